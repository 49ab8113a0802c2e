/** The conditions of a set: one function for each. */
import type { BackupPodSetStatus, Completion } from '../api/backuppodset.ts'
import type { ParsedSet } from '../api/parse.ts'
import { conditionTypes, reasons } from '../api/reasons.ts'
import { type Condition, setCondition } from '../kube/conditions.ts'
import { newestOf } from '../slot/decide/copy-age.ts'
import { heldSlots } from '../slot/decide/fence/verdict.ts'
import { isGone } from '../slot/decide/knowledge.ts'
import type { SlotMemory } from '../slot/decide/memory-view.ts'
import { pulledReadiness } from '../slot/http-state/status.ts'
import { checkpointReadiness } from '../slot/report/readiness.ts'
import { clonedOf, overdueWord } from './cloned.ts'
import { type Pause, pausesOf } from './decide/breaker.ts'
import { whyRollWaits, withErrands } from './decide/relay.ts'
import { kstatusOf, type Wanted } from './kstatus.ts'
import type { PassFacts } from './pass-facts.ts'
import { type UpdateWord, waitingUpdate } from './update-status.ts'

/** @param status with all slots, including those beyond the limit of the list. */
export function conditionsOf(
  set: ParsedSet,
  previous: readonly Condition[],
  status: BackupPodSetStatus,
  facts: PassFacts,
): readonly Condition[] {
  const cloned = clonedOf(set, facts)
  const progress = progressOf(set, status, facts, overdueWord(cloned, facts, progressDeadlineMs))
  const progressing = progressingOf(set, progress, facts)
  const wanted: readonly Wanted[] = [
    readyOf(set, progress, facts),
    availableOf(set, status, facts),
    progressing,
    degradedOf(facts, progress.waiting),
    pausedOf(set),
    ...suspendedOf(set, facts),
    ...cloned,
    ...checkpointReadyOf(set, status, facts),
    ...kstatusOf(progressing),
  ]
  return wanted.reduce<readonly Condition[]>(
    (all, condition) =>
      setCondition(all, { ...condition, observedGeneration: set.generation, now: facts.now }),
    previous.filter(({ type }) => wanted.some(condition => condition.type === type)),
  )
}

/** How far a set is from its spec. */
interface Progress {
  /** The numbers of pods are as wanted, and all of them are in place. */
  readonly inPlace: boolean
  /** A rollout is in progress. */
  readonly rolling: boolean
  /** Why the rollout makes no progress. */
  readonly stalled: string | undefined
  /** Pods that keep an older template. */
  readonly waiting: UpdateWord | undefined
  /** A pod has not started within the deadline. */
  readonly isOverdue: boolean
  readonly numbers: string
  readonly outdated: string
}

/** The default deadline of Deployments, ms. */
const progressDeadlineMs = 600_000

/** @param overdue why slots have not begun for longer than the deadline; undefined: all have begun, or may still. */
function progressOf(
  set: ParsedSet,
  status: BackupPodSetStatus,
  facts: PassFacts,
  overdue: string | undefined,
): Progress {
  const { readyReplicas = 0, readyHotbackups = 0, gatedColdbackups = 0 } = status
  const outdated = facts.pods.length - (status.updatedPods ?? 0)
  const waiting = waitingUpdate({ set, ...facts })
  const rolling =
    !set.suspended && outdated > 0 && set.updateStrategy === 'RollingUpdate' && waiting === undefined
  const stalled = rolling ? whyRollWaits(withErrands({ set, ...facts })) : undefined
  const stuck = facts.pods.filter(pod => pod.stuck !== undefined).sort((a, b) => a.createdAt - b.createdAt)
  const [first] = stuck
  const hindrance =
    first === undefined
      ? ''
      : `; ${stuck.length === 1 ? 'one pod does' : `${stuck.length} pods do`} not start; first ${first.name}: ${first.stuck}`
  return {
    inPlace: set.suspended ? present(facts) === 0 : isComplete(set, status, facts),
    rolling,
    stalled,
    waiting,
    isOverdue:
      !set.suspended &&
      (overdue !== undefined || (first !== undefined && facts.now - first.createdAt >= progressDeadlineMs)),
    numbers: set.suspended
      ? `${present(facts)} pods are to end, because spec.suspend is true`
      : `${readyReplicas} of ${set.replicas} primaries and ${readyHotbackups} of ${set.hotBackups} hot backups are ready, ` +
        `${gatedColdbackups} of ${set.coldBackups} cold backups wait at their gate${hindrance}${overdue === undefined ? '' : `; ${overdue}`}`,
    outdated: `${outdated} pods still have an older template${stalled ? `; ${stalled}` : ''}`,
  }
}

/** The apps of pods that are being deleted may run until their grace periods are over. */
const present = ({ pods, ending = 0 }: PassFacts): number => pods.length + ending

/** True if there are as many pods as the set asks for, and all are ready for their job. */
function isComplete(set: ParsedSet, status: BackupPodSetStatus, facts: PassFacts): boolean {
  return (
    facts.pods.filter(pod => pod.kind === 'primary').length === set.replicas &&
    status.hotbackups === set.hotBackups &&
    status.coldbackups === set.coldBackups &&
    status.readyReplicas === set.replicas &&
    status.readyHotbackups === set.hotBackups &&
    status.gatedColdbackups === set.coldBackups
  )
}

const isReady = ({ inPlace, rolling }: Progress): boolean => inPlace && !rolling

const completedWord = ({ pod, at }: Completion): UpdateWord => ({
  reason: reasons.completed,
  message: `${pod} ended with success at ${at}: no other pod continues`,
})

function readyOf(set: ParsedSet, progress: Progress, { completed }: PassFacts): Wanted {
  const type = conditionTypes.ready
  if (completed) return { type, status: 'False', ...completedWord(completed) }
  if (set.suspended)
    return { type, status: 'False', reason: reasons.suspended, message: 'spec.suspend is true' }
  const { numbers, outdated } = progress
  if (isReady(progress)) return { type, status: 'True', reason: reasons.allInPlace, message: numbers }
  return progress.inPlace
    ? { type, status: 'False', reason: reasons.rollingOut, message: outdated }
    : { type, status: 'False', reason: reasons.podsMissing, message: numbers }
}

/** Whether the primaries serve, whatever their backups do. */
function availableOf(
  set: ParsedSet,
  { readyReplicas = 0 }: BackupPodSetStatus,
  { completed }: PassFacts,
): Wanted {
  const type = conditionTypes.available
  if (completed) return { type, status: 'False', ...completedWord(completed) }
  if (set.suspended)
    return { type, status: 'False', reason: reasons.suspended, message: 'spec.suspend is true' }
  const message = `${readyReplicas} of ${set.replicas} primaries are ready`
  return readyReplicas >= set.replicas
    ? { type, status: 'True', reason: reasons.allServe, message }
    : { type, status: 'False', reason: reasons.primariesMissing, message }
}

function progressingOf(set: ParsedSet, progress: Progress, { completed }: PassFacts): Wanted {
  const type = conditionTypes.progressing
  if (completed) return { type, status: 'False', ...completedWord(completed) }
  const { inPlace, rolling, stalled, waiting, isOverdue, numbers, outdated } = progress
  if (set.paused) return { type, status: 'False', reason: reasons.paused, message: 'paused by spec.paused' }
  if (set.suspended)
    return inPlace
      ? { type, status: 'False', reason: reasons.suspended, message: 'all pods have ended' }
      : { type, status: 'True', reason: reasons.suspending, message: numbers }
  if (isReady(progress)) {
    const { reason, message } = waiting ?? { reason: reasons.settled, message: 'all pods are as wanted' }
    return { type, status: 'False', reason, message }
  }
  if (isOverdue) return { type, status: 'False', reason: reasons.progressDeadlineExceeded, message: numbers }
  if (stalled) return { type, status: 'True', reason: reasons.rollWaits, message: outdated }
  if (rolling && inPlace) return { type, status: 'True', reason: reasons.rollingOut, message: outdated }
  return { type, status: 'True', reason: reasons.converging, message: numbers }
}

function degradedOf(facts: PassFacts, waiting: UpdateWord | undefined): Wanted {
  const type = conditionTypes.degraded
  const problem = problemOf(facts, waiting)
  if (problem === undefined) return { type, status: 'False', reason: reasons.asExpected, message: '' }
  return { type, status: 'True', reason: problem.reason, message: problem.message }
}

/** Returns the first problem of a set that needs a person; undefined if there is none. */
function problemOf(facts: PassFacts, waiting: UpdateWord | undefined): UpdateWord | undefined {
  if (facts.failure !== undefined) return { reason: reasons.actionFailed, message: facts.failure }
  const { memory, monotonicNow = 0 } = facts
  const held = memory ? heldSlots({ memory, monotonicNow }) : []
  if (held.length > 0) return { reason: reasons.operatorBlind, message: heldWord(held) }
  const pauses = pausesOf(facts.failovers ?? [], facts.now).filter(({ slot }) =>
    facts.pods.some(pod => pod.kind === 'primary' && pod.slot === slot && !pod.ready),
  )
  if (pauses.length > 0)
    return { reason: reasons.replacementsPaused, message: pauses.slice(0, 5).map(pauseWord).join('; ') }
  const crashing = facts.pods.filter(pod => pod.crashLooping).slice(0, 5)
  if (crashing.length > 0) {
    const names = crashing.map(pod => pod.name).join(', ')
    return { reason: reasons.podsCrashLooping, message: `containers keep failing in ${names}` }
  }
  if (facts.gates !== undefined && facts.gates.length > 0)
    return { reason: reasons.gateUnreachable, message: shortly(facts.gates) }
  return waiting?.reason === reasons.updateWouldLoseState ? waiting : undefined
}

const heldWord = (slots: readonly number[]): string =>
  `slot ${slots.slice(0, 10).join(', ')}${slots.length > 10 ? ' and others' : ''}: the node of the primary is silent, but so are most nodes with primaries; no pod takes over by votes until fewer are silent, and for 30 s after`

const pauseWord = ({ slot, times, reason, until }: Pause): string =>
  `slot ${slot}: ${times} primaries in a row failed soon after their takeover (last: ${reason}); the next takeover is possible from ${new Date(until).toISOString()}`

const shortly = (all: readonly string[]): string =>
  [...all.slice(0, 3), ...(all.length > 3 ? [`and ${all.length - 3} more`] : [])].join('; ')

const pausedOf = (set: ParsedSet): Wanted => ({
  type: conditionTypes.paused,
  status: set.paused ? 'True' : 'False',
  reason: set.paused ? reasons.paused : reasons.running,
  message: set.paused ? 'spec.paused is true: the operator creates, converts and deletes no pod' : '',
})

/** Only sets with `suspend` have this condition. */
function suspendedOf(set: ParsedSet, facts: PassFacts): readonly Wanted[] {
  if (!set.suspended) return []
  const type = conditionTypes.suspended
  const not = (reason: string, message: string) => [{ type, status: 'False', reason, message }] as const
  if (set.paused) return not(reasons.paused, 'nothing ends while spec.paused is true')
  if (set.memory && facts.memory === undefined)
    return not(reasons.cacheIncomplete, 'the operator knows no memory of this set yet')
  const { running = [] } = facts.suspension ?? {}
  const [first] = running.toSorted(
    (a, b) => Number(a.reason === reasons.saving) - Number(b.reason === reasons.saving),
  )
  if (first !== undefined) {
    const words = running.map(({ pod, message }) => `slot ${pod.slot ?? 'unknown'} (${pod.name}): ${message}`)
    return not(first.reason, `primaries that still run: ${shortly(words)}`)
  }
  const open = [...(facts.memory?.slots.values() ?? [])].filter(
    ({ lease }) => lease.retainedSince === undefined,
  )
  if (present(facts) > 0 || open.length > 0)
    return not(reasons.suspending, `${present(facts)} pods and ${open.length} slots are ending`)
  return [{ type, status: 'True', ...keptWord(facts) }]
}

/** Says where the memory of a suspended set is, and what the loss of nodes has cost or would cost. */
function keptWord({ memory }: PassFacts): Pick<Wanted, 'reason' | 'message'> {
  const slots = [...(memory?.slots.values() ?? [])].filter(({ lease }) => lease.suspended)
  if (slots.length === 0)
    return { reason: reasons.suspended, message: 'all pods have ended, and no memory is kept' }
  // A node that has only older memory does not have what the others would lose.
  const sure = ({ lease, copies }: SlotMemory) => {
    const inOrder = copies.toSorted(newestOf(lease))
    return inOrder
      .filter(copy => !copy.stale && inOrder.slice(0, 1).every(newest => newestOf(lease)(newest, copy) === 0))
      .map(({ node }) => node)
  }
  const lost = slots.filter(isGone).map(({ lease }) => `slot ${lease.slot}`)
  if (lost.length > 0)
    return {
      reason: reasons.memoryLost,
      message: `no node has the memory of ${shortly(lost)} any more: it starts empty when the set resumes`,
    }
  const risky = slots.filter(slot => sure(slot).length < 2)
  if (risky.length > 0) {
    const words = risky.map(slot => {
      const [node] = sure(slot)
      return `the newest memory of slot ${slot.lease.slot} is ${node === undefined ? 'on no node whose agent is heard now' : `only on node ${node}, as far as agents are heard now`}`
    })
    return { reason: reasons.memoryAtRisk, message: shortly(words) }
  }
  return {
    reason: reasons.suspended,
    message: `the memory of ${slots.length === 1 ? 'one slot' : `${slots.length} slots`} is kept, each on two nodes or more; see retainedSlots`,
  }
}

/** Only sets that keep memory or whose state is pulled have this condition. */
function checkpointReadyOf(
  set: ParsedSet,
  status: BackupPodSetStatus,
  { memory, pulled, pods, monotonicNow = 0, completed }: PassFacts,
): readonly Wanted[] {
  if (completed) return []
  const type = conditionTypes.checkpointReady
  const slots = status.slots ?? []
  const times = { monotonicNow, intervalMs: set.memory?.intervalMs ?? 0, isPaused: set.paused }
  return [
    ...(memory ? [{ type, ...checkpointReadiness(memory, pods, slots, times) }] : []),
    ...(pulled ? [{ type, ...pulledReadiness(pulled, slots) }] : []),
  ]
}
