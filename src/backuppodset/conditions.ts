/** The conditions of a set: one function for each. */
import type { BackupPodSetStatus } from '../api/backuppodset.ts'
import type { ParsedSet } from '../api/parse.ts'
import { conditionTypes, reasons } from '../api/reasons.ts'
import { type Condition, setCondition } from '../kube/conditions.ts'
import { heldSlots } from '../slot/decide/fence/verdict.ts'
import { pulledReadiness } from '../slot/http-state/status.ts'
import { checkpointReadiness } from '../slot/report/readiness.ts'
import { type Pause, pausesOf } from './decide/breaker.ts'
import { whyRollWaits, withErrands } from './decide/relay.ts'
import type { PassFacts } from './pass-facts.ts'
import { type UpdateWord, waitingUpdate } from './update-status.ts'

type Wanted = Pick<Condition, 'type' | 'status' | 'reason' | 'message'>

/** @param status with all slots, including those beyond the limit of the list. */
export function conditionsOf(
  set: ParsedSet,
  previous: readonly Condition[],
  status: BackupPodSetStatus,
  facts: PassFacts,
): readonly Condition[] {
  const progress = progressOf(set, status, facts)
  const wanted: readonly Wanted[] = [
    readyOf(progress),
    progressingOf(set, progress),
    degradedOf(facts, progress.waiting),
    pausedOf(set),
    ...checkpointReadyOf(set, status, facts),
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

function progressOf(set: ParsedSet, status: BackupPodSetStatus, facts: PassFacts): Progress {
  const { readyReplicas = 0, readyHotbackups = 0, gatedColdbackups = 0 } = status
  const outdated = facts.pods.length - (status.updatedPods ?? 0)
  const waiting = waitingUpdate({ set, ...facts })
  const rolling = outdated > 0 && set.updateStrategy === 'RollingUpdate' && waiting === undefined
  const stalled = rolling ? whyRollWaits(withErrands({ set, ...facts })) : undefined
  const stuck = facts.pods.filter(pod => pod.stuck !== undefined).sort((a, b) => a.createdAt - b.createdAt)
  const [first] = stuck
  const hindrance =
    first === undefined
      ? ''
      : `; ${stuck.length === 1 ? 'one pod does' : `${stuck.length} pods do`} not start; first ${first.name}: ${first.stuck}`
  return {
    inPlace:
      facts.pods.filter(pod => pod.kind === 'primary').length === set.replicas &&
      status.hotbackups === set.hotBackups &&
      status.coldbackups === set.coldBackups &&
      readyReplicas === set.replicas &&
      readyHotbackups === set.hotBackups &&
      gatedColdbackups === set.coldBackups,
    rolling,
    stalled,
    waiting,
    isOverdue: first !== undefined && facts.now - first.createdAt >= progressDeadlineMs,
    numbers:
      `${readyReplicas} of ${set.replicas} primaries and ${readyHotbackups} of ${set.hotBackups} hot backups are ready, ` +
      `${gatedColdbackups} of ${set.coldBackups} cold backups wait at their gate${hindrance}`,
    outdated: `${outdated} pods still have an older template${stalled ? `; ${stalled}` : ''}`,
  }
}

const isReady = ({ inPlace, rolling }: Progress): boolean => inPlace && !rolling

function readyOf(progress: Progress): Wanted {
  const type = conditionTypes.ready
  const { numbers, outdated } = progress
  if (isReady(progress)) return { type, status: 'True', reason: reasons.allInPlace, message: numbers }
  return progress.inPlace
    ? { type, status: 'False', reason: reasons.rollingOut, message: outdated }
    : { type, status: 'False', reason: reasons.podsMissing, message: numbers }
}

function progressingOf(set: ParsedSet, progress: Progress): Wanted {
  const type = conditionTypes.progressing
  const { inPlace, rolling, stalled, waiting, isOverdue, numbers, outdated } = progress
  if (set.paused) return { type, status: 'False', reason: reasons.paused, message: 'paused by spec.paused' }
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

/** Only sets that keep memory or whose state is pulled have this condition. */
function checkpointReadyOf(
  set: ParsedSet,
  status: BackupPodSetStatus,
  { memory, pulled, pods, monotonicNow = 0 }: PassFacts,
): readonly Wanted[] {
  const type = conditionTypes.checkpointReady
  const slots = status.slots ?? []
  const times = { monotonicNow, intervalMs: set.memory?.intervalMs ?? 0 }
  return [
    ...(memory ? [{ type, ...checkpointReadiness(memory, pods, slots, times) }] : []),
    ...(pulled ? [{ type, ...pulledReadiness(pulled, slots) }] : []),
  ]
}
