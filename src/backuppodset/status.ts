import {
  type BackupPodSetStatus,
  type LastFailover,
  type LastTransition,
  limits,
  type SlotStatus,
} from '../api/backuppodset.ts'
import { labels, type PodKind } from '../api/labels.ts'
import type { ParsedSet } from '../api/parse.ts'
import { conditionTypes, reasons } from '../api/reasons.ts'
import { type Condition, setCondition } from '../kube/conditions.ts'
import { type Pause, pausesOf } from './decide/breaker.ts'
import { partitionPrimaries } from './decide/primary-sets.ts'
import { whyRollWaits, withErrands } from './decide/relay.ts'
import { listed, slotFailover } from './failover-history.ts'
import type { RefusedSpec } from './in-force.ts'
import { checkpointReadiness, retainedSlots, slotFacts } from './memory/status.ts'
import type { MemoryView } from './memory/view.ts'
import { type PulledFacts, pulledReadiness, pulledSlotFacts } from './pulled/status.ts'
import type { PodView } from './snapshot.ts'
import { waitingUpdate } from './update-status.ts'

/** The facts that a pass knows at its end. */
export interface PassFacts {
  /** Live pods as they are after the writes of the pass. */
  readonly pods: readonly PodView[]
  readonly templateHash: string
  readonly restoreHash?: string | undefined
  /** Why an action failed, for display; undefined if none did. */
  readonly failure: string | undefined
  /** Problems with gates of cold backups, for display. */
  readonly gates?: readonly string[]
  readonly lastTransition: LastTransition | undefined
  readonly lastFailover: LastFailover | undefined
  /** All known failovers, newest first. */
  readonly failovers?: readonly LastFailover[]
  /** Wall clock, ms. */
  readonly now: number
  /** For sets that keep memory. */
  readonly memory?: MemoryView
  /** Monotonic clock, ms; with `memory`. */
  readonly monotonicNow?: number
  /** For sets whose state is pulled. */
  readonly pulled?: PulledFacts
  /** The spec is refused: the facts describe the spec in force instead. */
  readonly refusal?: RefusedSpec
  /** Slots of a set with pulled state whose primary was lost and has no successor yet. */
  readonly vacant?: ReadonlySet<number>
}

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
    },
    selector: `${labels.set}=${set.name},${labels.type}=primary`,
    slots: slots.slice(0, limits.listed),
    ...(facts.memory && retainedSlots(facts.memory)),
    ...optional('lastTransition', facts.lastTransition ?? previous?.lastTransition),
    ...optional('lastFailover', facts.lastFailover ?? previous?.lastFailover),
    ...optional('failovers', facts.failovers?.length ? listed(facts.failovers) : previous?.failovers),
    conditions: [],
  }
  // From all slots, including those beyond the limit of the list.
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

/** The default deadline of Deployments, ms. */
const progressDeadlineMs = 600_000

function conditionsOf(
  set: ParsedSet,
  previous: readonly Condition[],
  status: BackupPodSetStatus,
  facts: PassFacts,
): readonly Condition[] {
  const { readyReplicas = 0, readyHotbackups = 0, gatedColdbackups = 0 } = status
  const outdated = facts.pods.length - (status.updatedPods ?? 0)
  const waiting = waitingUpdate({ set, ...facts })
  const rolling = outdated > 0 && set.updateStrategy === 'RollingUpdate' && waiting === undefined
  const inPlace =
    facts.pods.filter(pod => pod.kind === 'primary').length === set.replicas &&
    status.hotbackups === set.hotBackups &&
    status.coldbackups === set.coldBackups &&
    readyReplicas === set.replicas &&
    readyHotbackups === set.hotBackups &&
    gatedColdbackups === set.coldBackups
  const isReady = inPlace && !rolling
  const stuck = facts.pods.filter(pod => pod.stuck !== undefined).sort((a, b) => a.createdAt - b.createdAt)
  const [first] = stuck
  const hindrance =
    first === undefined
      ? ''
      : `; ${stuck.length === 1 ? 'one pod does' : `${stuck.length} pods do`} not start; first ${first.name}: ${first.stuck}`
  const isOverdue = first !== undefined && facts.now - first.createdAt >= progressDeadlineMs
  const numbers =
    `${readyReplicas} of ${set.replicas} primaries and ${readyHotbackups} of ${set.hotBackups} hot backups are ready, ` +
    `${gatedColdbackups} of ${set.coldBackups} cold backups wait at their gate${hindrance}`
  const stalled = rolling ? whyRollWaits(withErrands({ set, ...facts })) : undefined
  const rollingMessage = `${outdated} pods still have an older template${stalled ? `; ${stalled}` : ''}`
  const crashing = facts.pods.filter(pod => pod.crashLooping)
  const pauses = pausesOf(facts.failovers ?? [], facts.now).filter(({ slot }) =>
    facts.pods.some(pod => pod.kind === 'primary' && pod.slot === slot && !pod.ready),
  )
  const degraded =
    facts.failure !== undefined
      ? { reason: reasons.actionFailed, message: facts.failure }
      : pauses.length > 0
        ? { reason: reasons.replacementsPaused, message: pauses.slice(0, 5).map(pauseWord).join('; ') }
        : crashing.length > 0
          ? {
              reason: reasons.podsCrashLooping,
              message: `containers keep failing in ${names(crashing).slice(0, 5).join(', ')}`,
            }
          : facts.gates !== undefined && facts.gates.length > 0
            ? { reason: reasons.gateUnreachable, message: shortly(facts.gates) }
            : waiting?.reason === reasons.updateWouldLoseState
              ? waiting
              : undefined
  const wanted: readonly Pick<Condition, 'type' | 'status' | 'reason' | 'message'>[] = [
    isReady
      ? { type: conditionTypes.ready, status: 'True', reason: reasons.allInPlace, message: numbers }
      : {
          type: conditionTypes.ready,
          status: 'False',
          reason: inPlace ? reasons.rollingOut : reasons.podsMissing,
          message: inPlace ? rollingMessage : numbers,
        },
    set.paused || isReady
      ? {
          type: conditionTypes.progressing,
          status: 'False',
          reason: set.paused ? reasons.paused : (waiting?.reason ?? reasons.settled),
          message: set.paused ? 'paused by spec.paused' : (waiting?.message ?? 'all pods are as wanted'),
        }
      : isOverdue
        ? {
            type: conditionTypes.progressing,
            status: 'False',
            reason: reasons.progressDeadlineExceeded,
            message: numbers,
          }
        : {
            type: conditionTypes.progressing,
            status: 'True',
            reason: stalled
              ? reasons.rollWaits
              : rolling && inPlace
                ? reasons.rollingOut
                : reasons.converging,
            message: stalled || (rolling && inPlace) ? rollingMessage : numbers,
          },
    {
      type: conditionTypes.degraded,
      status: degraded ? 'True' : 'False',
      reason: degraded?.reason ?? reasons.asExpected,
      message: degraded?.message ?? '',
    },
    {
      type: conditionTypes.paused,
      status: set.paused ? 'True' : 'False',
      reason: set.paused ? reasons.paused : reasons.running,
      message: set.paused ? 'spec.paused is true: the operator creates, converts and deletes no pod' : '',
    },
    ...(facts.memory
      ? [
          {
            type: conditionTypes.checkpointReady,
            ...checkpointReadiness(facts.memory, facts.pods, status.slots ?? [], {
              monotonicNow: facts.monotonicNow ?? 0,
              intervalMs: set.memory?.intervalMs ?? 0,
            }),
          },
        ]
      : []),
    ...(facts.pulled
      ? [{ type: conditionTypes.checkpointReady, ...pulledReadiness(facts.pulled, status.slots ?? []) }]
      : []),
  ]
  return wanted.reduce<readonly Condition[]>(
    (all, condition) =>
      setCondition(all, { ...condition, observedGeneration: set.generation, now: facts.now }),
    previous.filter(({ type }) => wanted.some(condition => condition.type === type)),
  )
}

const pauseWord = ({ slot, times, reason, until }: Pause): string =>
  `slot ${slot}: ${times} primaries in a row failed soon after their takeover (last: ${reason}); the next takeover is possible from ${new Date(until).toISOString()}`

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

const optional = <Key extends string, Value>(
  key: Key,
  value: Value | undefined,
): { readonly [_ in Key]?: Value } => (value === undefined ? {} : { [key]: value }) as { [_ in Key]?: Value }

const shortly = (all: readonly string[]): string =>
  [...all.slice(0, 3), ...(all.length > 3 ? [`and ${all.length - 3} more`] : [])].join('; ')
