/** The spans of a failover that the operator knows, from the status of its set. Pure. */
import type { BackupPodSet } from '../api/backuppodset.ts'
import { slotLeaseName } from '../api/numbered-slot.ts'
import { podConditions, servingReasons } from '../api/pod-contract.ts'
import { servingRecordOf } from '../api/serving-record.ts'
import { failoverSteps, type LastFailover, type SlotStatus } from '../api/slot-status.ts'
import type { Pod } from '../kube/resources.ts'
import { attributesOf, rootOf, type Span, spanIdOf, traceOfChange } from './span.ts'

/** A failover of a slot, as far as the status still has it. */
export interface FailoverFacts {
  readonly set: Pick<BackupPodSet, 'metadata'>
  readonly slot: Pick<SlotStatus, 'slot' | 'epoch' | 'pod' | 'node'>
  readonly failover: LastFailover
  /** The lost primary, if it still exists. */
  readonly lost: Pod | undefined
}

/** By what a step of `failoverSteps` spends its time. */
const names: Readonly<Record<(typeof failoverSteps)[number], string>> = {
  lease: 'decide and write the Lease',
  woken: 'open the gate',
  serving: 'wait until the app answers',
  published: 'write label and endpoints',
}

/** An agent's stamp that lies further back belongs to something else, ms. */
const longestDetection = 120_000

export function failoverSpans(facts: FailoverFacts): readonly Span[] {
  const { set, slot, failover, lost } = facts
  const to = Date.parse(failover.at)
  if (Number.isNaN(to)) return []
  const traceId = traceOfFailover(facts)
  const seen = to - failover.seconds * 1000
  const died = diedAt(lost, seen)
  const root = rootOf(traceId)
  const { namespace = '', name } = set.metadata
  return [
    {
      ...{ traceId, spanId: root, name: 'failover', from: died ?? seen, to },
      attributes: attributesOf({
        ...{ 'k8s.namespace.name': namespace, 'understudy.set': name },
        ...{ 'understudy.slot': slot.slot, 'understudy.epoch': slot.epoch },
        ...{ 'understudy.from': failover.from, 'understudy.to': failover.to },
        ...{ 'understudy.from.node': lost?.spec?.nodeName, 'understudy.to.node': slot.node },
        ...{ 'understudy.reason': failover.reason, 'understudy.memory': failover.how },
        ...{ 'understudy.generation': failover.generation, 'understudy.state_age': failover.stateAge },
        'understudy.died_at.known': died !== undefined,
      }),
    },
    ...stepsOf(failover, seen, to).map(
      (step): Span => ({
        ...{ traceId, spanId: spanIdOf(traceId, 'operator', step.name), parentId: root },
        ...{ name: step.name, from: step.from, to: step.to },
        attributes: {},
      }),
    ),
  ]
}

export const traceOfFailover = ({ set, slot }: Pick<FailoverFacts, 'set' | 'slot'>): string =>
  traceOfChange({
    owner: set.metadata.uid,
    slot: slotLeaseName(set.metadata.name, slot.slot),
    epoch: slot.epoch,
  })

/** The steps follow each other from the operator's first sight of the loss. Without memory there is one write. */
function stepsOf(
  { phases = {} }: LastFailover,
  seen: number,
  end: number,
): readonly Pick<Span, 'name' | 'from' | 'to'>[] {
  let from = seen
  const steps = failoverSteps.flatMap(step => {
    const seconds = phases[step]
    if (seconds === undefined) return []
    const began = from
    // Each number is rounded.
    from = Math.min(from + seconds * 1000, end)
    return [{ name: names[step], from: began, to: from }]
  })
  return steps.length > 0 ? steps : [{ name: 'decide and write the label', from: seen, to: end }]
}

/**
 * Returns when the agent of the lost primary declared its death, by the clock of its node: the status only has the operator's
 * first sight. Undefined: no agent has, or the pod is gone.
 */
function diedAt(lost: Pod | undefined, seen: number): number | undefined {
  const isDead = lost?.status?.conditions?.some(
    ({ type, reason }) => type === podConditions.serving && reason === servingReasons.died,
  )
  const at = lost && isDead ? servingRecordOf(lost).left?.at : undefined
  return at !== undefined && at <= seen && seen - at < longestDetection ? at : undefined
}

/** Returns the failovers that a status has and the one before it has not. */
export function newFailovers(
  set: BackupPodSet,
  before: BackupPodSet | undefined,
): readonly Pick<FailoverFacts, 'set' | 'slot' | 'failover'>[] {
  const told = new Set(before?.status?.slots?.flatMap(slot => keyOf(slot) ?? []))
  return (set.status?.slots ?? []).flatMap(slot => {
    const key = keyOf(slot)
    if (key === undefined || told.has(key) || slot.lastFailover === undefined) return []
    const { lastFailover: short } = slot
    const whole = set.status?.failovers?.find(
      each => each.slot === slot.slot && each.to === short.to && each.at === short.at,
    )
    return [{ set, slot, failover: whole ?? { slot: slot.slot, ...short } }]
  })
}

/** A slot whose primary got it by its last failover; a later handover has another epoch, which is no failover. */
const keyOf = ({ slot, pod, lastFailover }: SlotStatus): string | undefined =>
  lastFailover?.to === pod ? `${slot} ${pod} ${lastFailover.at}` : undefined
