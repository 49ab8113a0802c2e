import { type BackupPodSetStatus, limits } from '../api/backuppodset.ts'
import { labels, type PodKind } from '../api/labels.ts'
import type { ParsedSet } from '../api/parse.ts'
import { conditionTypes } from '../api/reasons.ts'
import { type Protection, protections, type SlotStatus } from '../api/slot-status.ts'
import { type Condition, setCondition } from '../kube/conditions.ts'
import { pulledSlotFacts } from '../slot/http-state/status.ts'
import { retainedSlots, slotFacts } from '../slot/report/status.ts'
import { conditionsOf } from './conditions.ts'
import { partitionPrimaries } from './decide/primary-sets.ts'
import { listed, slotFailover } from './failover-history.ts'
import type { RefusedSpec } from './in-force.ts'
import type { PassFacts } from './pass-facts.ts'
import type { PodView } from './snapshot.ts'

/**
 * Returns the status that a set should show. Pure; equal facts give an equal status, independent of the order of pods.
 */
export function statusOf(
  set: ParsedSet,
  previous: BackupPodSetStatus | undefined,
  facts: PassFacts,
): BackupPodSetStatus {
  const ofKind = (kind: PodKind) =>
    facts.pods.filter(pod => pod.kind === kind).sort((a, b) => (a.name < b.name ? -1 : 1))
  const everyPrimary = ofKind('primary')
  // During a takeover two pods carry the label of a slot's primary; they count as one replica.
  const { primaries, superseded } = partitionPrimaries(everyPrimary)
  const primaryNames = names([...primaries].sort((a, b) => (a.name < b.name ? -1 : 1)))
  const serves = ({ slot, ready }: PodView) =>
    ready || superseded.some(other => other.slot === slot && other.ready)
  const hot = ofKind('hotbackup')
  const cold = ofKind('coldbackup')
  const counts = {
    readyReplicas: primaries.filter(serves).length,
    readyHotbackups: hot.filter(pod => pod.ready).length,
    gatedColdbackups: cold.filter(pod => pod.gate === 'waiting').length,
  }
  const slots = slotsOf(everyPrimary, facts, previous)
  const status: BackupPodSetStatus = {
    observedGeneration: set.generation,
    replicas: primaries.length,
    hotbackups: hot.length,
    coldbackups: cold.length,
    ...counts,
    updatedPods: facts.pods.filter(pod => pod.templateHash === facts.templateHash).length,
    primaryPodNames: primaryNames,
    hotbackupPodNames: names(hot),
    coldbackupPodNames: names(cold),
    summary: {
      replicas: `${primaries.length}/${set.replicas}`,
      hotbackups: `${hot.length}/${set.hotBackups}`,
      coldbackups: `${cold.length}/${set.coldBackups}`,
      ready: `${counts.readyReplicas}/${set.replicas}`,
      readyBackups: `${counts.readyHotbackups + counts.gatedColdbackups}/${set.hotBackups + set.coldBackups}`,
      ...optional('protection', leastProtection(slots)),
    },
    selector: `${labels.set}=${set.name},${labels.type}=primary`,
    slots: slots.slice(0, limits.listed),
    ...(facts.memory && retainedSlots(facts.memory)),
    ...optional('lastTransition', facts.lastTransition ?? previous?.lastTransition),
    ...optional('lastFailover', facts.lastFailover ?? previous?.lastFailover),
    ...optional('failovers', facts.failovers?.length ? listed(facts.failovers) : previous?.failovers),
    ...optional('completion', facts.completed),
    conditions: [],
  }
  const conditions = conditionsOf(set, previous?.conditions ?? [], { ...status, slots }, facts)
  if (facts.refusal === undefined) return { ...status, conditions }
  const refused = refusedStatus(set.generation, previous, facts.refusal, facts.now).conditions ?? []
  const verdict = (type: string) =>
    isVerdict(type) ? refused.find(condition => condition.type === type) : undefined
  return { ...status, conditions: conditions.map(condition => verdict(condition.type) ?? condition) }
}

const verdicts = [
  [conditionTypes.ready, 'False'],
  // Otherwise a client that waits for the end of the rollout would wait forever.
  [conditionTypes.progressing, 'False'],
  [conditionTypes.degraded, 'True'],
  [conditionTypes.reconciling, 'False'],
  [conditionTypes.stalled, 'True'],
] as const

const isVerdict = (type: string): boolean => verdicts.some(([verdict]) => verdict === type)

/** Returns the status of a set whose spec is refused; the other fields stay as they were. */
export function refusedStatus(
  generation: number,
  previous: BackupPodSetStatus | undefined,
  refusal: RefusedSpec,
  now: number,
): BackupPodSetStatus {
  return {
    ...previous,
    observedGeneration: generation,
    conditions: verdicts.reduce<readonly Condition[]>(
      (all, [type, status]) =>
        setCondition(all, {
          type,
          status,
          reason: refusal.code,
          message: refusal.message,
          observedGeneration: generation,
          now,
        }),
      previous?.conditions ?? [],
    ),
  }
}

const names = (pods: readonly PodView[]): readonly string[] =>
  pods.slice(0, limits.listed).map(pod => pod.name)

const slotsOf = (
  primaries: readonly PodView[],
  facts: PassFacts,
  previous: BackupPodSetStatus | undefined,
): readonly SlotStatus[] => {
  const { memory, pulled, now, monotonicNow = 0, failovers = [], vacant } = facts
  // A slot's pulled state belongs to its last primary; a successor that is still waking is not listed yet.
  const held = pulled ? primaries.filter(pod => !pod.waking || pod.pulled?.emptied) : primaries
  const left = (pulled ? previous?.slots : undefined)?.filter(
    ({ slot }) => vacant?.has(slot) && held.every(pod => pod.slot !== slot),
  )
  return [
    ...held.flatMap((pod): SlotStatus[] => {
      const { slot, name, node, ready, epoch } = pod
      if (slot === undefined) return []
      const kept = memory && slotFacts(memory.slots.get(slot), pod, facts.pods, { now, monotonicNow })
      const told = pulled && pulledSlotFacts(pulled, slot, pod, facts.pods)
      const last =
        slotFailover(failovers, slot, name) ??
        previous?.slots?.find(each => each.slot === slot && each.pod === name)?.lastFailover
      return [
        {
          slot,
          pod: name,
          ...optional('node', node),
          epoch,
          ready,
          ...kept,
          ...told,
          ...optional('lastFailover', last),
        },
      ]
    }),
    ...(left ?? []).map(slot => ({ ...slot, ready: false })),
  ]
    .sort((a, b) => a.slot - b.slot || b.epoch - a.epoch)
    .filter(({ slot }, index, all) => all[index - 1]?.slot !== slot)
}

/** Returns the protection of the slot that would lose most; undefined if no slot keeps memory. */
const leastProtection = (slots: readonly SlotStatus[]): Protection | undefined =>
  protections.findLast(protection => slots.some(slot => slot.protection === protection))

const optional = <Key extends string, Value>(
  key: Key,
  value: Value | undefined,
): { readonly [_ in Key]?: Value } => (value === undefined ? {} : { [key]: value }) as { [_ in Key]?: Value }
