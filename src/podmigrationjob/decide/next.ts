/** The next status of each job, and what is to be done for it. Pure: facts, configuration and time decide. */
import type { ParsedArgs } from '../../api/migration-controller-args.ts'
import type { ParsedJob } from '../../api/parse-pod-migration-job.ts'
import {
  isFinishedJob,
  type JobMode,
  jobConditions,
  type PodMigrationJobStatus,
} from '../../api/pod-migration-job.ts'
import { isEqual } from '../../kube/equal.ts'
import { arbitrate, disruptionBudgetsOf, placeOf, type Verdict } from './arbitrate.ts'
import { evictDirectly } from './evict-directly.ts'
import { type Gates, gatesOf, gatesToCreate } from './gate.ts'
import { callOff, live } from './live.ts'
import {
  decideReservations,
  type ReservationPlan,
  type ReservationView,
  reservationKeyOf,
} from './reservation.ts'
import { giveUp, reservationFirst } from './reservation-first.ts'
import type { Action, JobView } from './view.ts'
import { aborted, failed, statusAfter, type Word, waits } from './word.ts'
import type { RunningJob, WaitingJob, World } from './world.ts'

/** No pod gives way to a job that does not wait for it any more; one that is paused pauses those for it. */
function forItsPreemptor(view: JobView): JobView {
  const { parsed, preemptor } = view
  if (preemptor === undefined || !parsed.ok) return view
  const { isAborted, isPaused } = parsed.job
  const job = {
    ...parsed.job,
    ...{ isAborted: isAborted || preemptor.isOver, isPaused: isPaused || preemptor.isPaused },
  }
  return { ...view, parsed: { ...parsed, job } }
}

/** Statuses that one pass writes, and jobs that it deletes: the reason for which thousands wait may change at once. */
export const mostWrites = 100

/** Time until the pass that writes the others, ms. */
const nextWritesMs = 1_000

export interface Plan {
  /** Each job whose status changes, with its new status. Jobs that run or end come before those that wait. */
  readonly statuses: readonly { readonly view: JobView; readonly status: PodMigrationJobStatus }[]
  readonly actions: readonly Action[]
  readonly deletions: readonly JobView[]
  readonly reservations: ReservationPlan
  /** How often pods that give way were looked for, or would have been. */
  readonly looks: number
  /** Jobs that begin with this plan. */
  readonly admitted: number
  /** Reasons for which jobs wait, and how many do. */
  readonly waiting: ReadonlyMap<string, number>
  /** Ms until time alone may change the plan; undefined: never. */
  readonly againAfterMs: number | undefined
}

export interface Surroundings {
  readonly world: World
  readonly reservations?: readonly ReservationView[]
  readonly config: ParsedArgs
  /** Wall clock, ms since the epoch. */
  readonly now: number
  /** How many jobs the flow control lets begin now. */
  readonly tokens: number
  /** False: pods that give way were looked for a moment ago, and the search is long. */
  readonly mayLook?: boolean
}

export function decide(given: readonly JobView[], { mayLook = true, ...around }: Surroundings): Plan {
  const views = given.map(forItsPreemptor)
  const running = views.flatMap(view => (isRunning(view) ? runningJob(view) : []))
  const { gates, looks } = gatesOf(views, { ...around, running, mayLook })
  const surroundings = { ...around, gates }
  const { config, now } = surroundings
  const { verdicts, order } = judged(views, running, surroundings)
  const place = (view: JobView) => order.get(view.key) ?? Number.POSITIVE_INFINITY
  const words = views.flatMap(view =>
    isFinishedJob(view) ? [] : [{ view, word: wordOf(view, verdicts.get(view.key), surroundings) }],
  )
  const changes = words
    .map(({ view, word }) => ({ view, status: statusAfter(view, word, now) }))
    .filter(({ view, status }) => !isEqual(status, view.status))
    .sort((a, b) => rank(a.status) - rank(b.status) || place(a.view) - place(b.view))
  const kept = config.ok ? config.args.finishedJobTtlMs : undefined
  const deletions = views.filter(view => isFinishedJob(view) && isOutlived(view, kept, now))
  const actions = [
    ...words.flatMap(({ word }) => (word.action === undefined ? [] : [word.action])),
    ...views.filter(isFinishedJob).flatMap(view => callOff(view, view.live) ?? giveUp(view) ?? []),
  ]
  const reservations = reservationPlan(views, actions, surroundings)
  return {
    statuses: changes.slice(0, mostWrites),
    ...{ actions, reservations, looks },
    deletions: deletions.slice(0, mostWrites),
    admitted: changes
      .slice(0, mostWrites)
      .filter(({ view, status }) => isWaiting(view) && status.phase === 'Running').length,
    waiting: countBy(words.flatMap(({ word }) => (word.phase === 'Pending' ? [word.reason] : []))),
    againAfterMs: soonest(views, words, {
      ...{ config, now, isMore: looks > 0 || changes.length > mostWrites || deletions.length > mostWrites },
      expiresAfterMs: reservations.againAfterMs,
    }),
  }
}

type Gated = Surroundings & Pick<Gates, 'gates'>

/** A reservation gets no pod before its job refers to it, nor while it is given up. */
function reservationPlan(
  views: readonly JobView[],
  actions: readonly Action[],
  { reservations = [], config, gates, now }: Gated,
): ReservationPlan {
  const held = actions.flatMap(action =>
    action.type === 'referTo' || action.type === 'deleteReservation'
      ? [reservationKeyOf(action.reservation.resource, action.reservation.name)]
      : [],
  )
  const isHeld = !config.ok || !config.args.isEnabled || config.args.dryRun
  const gated = gatesToCreate(views)
  return decideReservations(reservations, { held: new Set(held), isHeld, gated, gates, now })
}

const isWaiting = ({ status: { phase } }: JobView): boolean => phase === undefined || phase === 'Pending'

/** Jobs that run or end come first, in the order of their admission. */
const rank = ({ phase }: PodMigrationJobStatus): number => (phase === 'Pending' ? 1 : 0)

interface Judged {
  readonly verdicts: ReadonlyMap<string, Verdict>
  readonly order: ReadonlyMap<string, number>
}

function judged(
  views: readonly JobView[],
  running: readonly RunningJob[],
  { world, config, tokens }: Surroundings,
): Judged {
  if (!config.ok || !config.args.isEnabled) return { verdicts: new Map(), order: new Map() }
  const waiting = views.flatMap(view => {
    const { parsed } = view
    const isJudged = isWaiting(view) && parsed.ok && !parsed.job.isPaused && !parsed.job.isAborted
    return isJudged ? [waitingJob(view, parsed.job)] : []
  })
  const { verdicts, admitted } = arbitrate({ waiting, running }, world, config.args, tokens)
  return { verdicts, order: new Map(admitted.map(({ key }, index) => [key, index])) }
}

const isRunning = ({ status }: JobView): boolean => status.phase === 'Running'

const waitingJob = (
  { status, key, name, createdAt, seenForMs, preemptor }: JobView,
  job: ParsedJob,
): WaitingJob => ({
  ...{ key, name, createdAt, seenForMs, mode: job.mode, skipGates: job.skipGates, priority: job.priority },
  pod: { ...job.pod, uid: job.pod.uid ?? status.source?.uid },
  lentBy: preemptor?.source,
})

/** A job without a source was not admitted by any operator: a status that others have written. */
function runningJob({ key, name, createdAt, status, parsed, pod }: JobView): readonly RunningJob[] {
  const { source } = status
  if (source === undefined || !parsed.ok) return []
  const { namespace } = parsed.job.pod
  // A pod may get its node after the admission.
  const now = pod && placeOf(pod)
  const { uid, nodeName: node = now?.node, workload = now?.workload } = source
  const disruptionBudgets = pod === undefined ? [] : disruptionBudgetsOf(parsed.job, pod)
  return [{ key, name, createdAt, place: { uid, namespace, node, workload }, disruptionBudgets }]
}

function wordOf(view: JobView, verdict: Verdict | undefined, surroundings: Gated): Word {
  const { config, now } = surroundings
  const { parsed, status } = view
  // The configuration may have the mode that the job lacks.
  if (!config.ok && !isRunning(view) && !(parsed.ok && parsed.job.isAborted))
    return waits('InvalidConfiguration', config.message)
  if (!parsed.ok) return failed(parsed.code, parsed.message)
  const { job } = parsed
  if (!isRunning(view)) return toBegin(view, job, verdict, config)
  if (status.source === undefined)
    return waits('Arbitrating', 'the job is judged again: its status names no pod')
  const isTimedOut = now - Date.parse(status.startTime ?? '') >= job.ttlMs
  switch (job.mode) {
    case 'EvictDirectly':
      return evictDirectly(view, job, isTimedOut, surroundings)
    case 'Live':
      return live(view, job, isTimedOut, surroundings)
    case 'ReservationFirst':
      return reservationFirst(view, job, isTimedOut, surroundings)
    default:
      return job.mode satisfies never
  }
}

function toBegin(view: JobView, job: ParsedJob, verdict: Verdict | undefined, config: ParsedArgs): Word {
  if (job.isAborted) return aborted(view, ' before it had begun')
  if (!config.ok) return waits('InvalidConfiguration', config.message)
  if (!config.args.isEnabled) return waits('Disabled', 'the configuration has enabled: false')
  if (job.isPaused) return waits('Paused', 'the job is paused')
  if (verdict === undefined) return waits('Arbitrating', 'the job is judged with the others')
  const { type } = verdict
  switch (type) {
    case 'refused':
      return {
        ...failed(verdict.reason, verdict.message),
        condition: { type: jobConditions.arbitrated, status: 'False' },
      }
    case 'waits':
      return waits(verdict.reason, verdict.message)
    case 'admitted':
      return admitted(config.args.dryRun, job.mode)
    default:
      return type satisfies never
  }
}

const admitted = (isDryRun: boolean, mode: JobMode): Word => ({
  more: { mode },
  ...(isDryRun
    ? { phase: 'Succeed', reason: 'DryRun', message: 'the job would begin now; nothing was done' }
    : { phase: 'Running', reason: 'Admitted', message: 'all budgets have a place for the job' }),
  condition: { type: jobConditions.arbitrated, status: 'True' },
})

const endedAt = ({ status, createdAt }: JobView): number => {
  const at = Date.parse(status.completionTime ?? '')
  return Number.isNaN(at) ? createdAt : at
}

/** With a configuration that is refused, nothing is deleted. */
const isOutlived = (view: JobView, keptMs: number | undefined, now: number): boolean =>
  keptMs !== undefined && now - endedAt(view) >= keptMs

function countBy(reasons: readonly string[]): ReadonlyMap<string, number> {
  const counts = new Map<string, number>()
  for (const reason of reasons) counts.set(reason, (counts.get(reason) ?? 0) + 1)
  return counts
}

function soonest(
  views: readonly JobView[],
  words: readonly { readonly view: JobView; readonly word: Word }[],
  {
    config,
    now,
    isMore,
    expiresAfterMs,
  }: Pick<Surroundings, 'config' | 'now'> & {
    readonly isMore: boolean
    readonly expiresAfterMs: number | undefined
  },
): number | undefined {
  const kept = config.ok ? config.args.finishedJobTtlMs : undefined
  const ends = views.flatMap(view =>
    isFinishedJob(view) ? (kept === undefined ? [] : [endedAt(view) + kept]) : deadlineOf(view),
  )
  // Such a job waits until time has told what an act without an answer has done, or that a cache is not behind.
  const byTime = ['Aborting', 'Releasing', 'MissingReservation']
  const waiting = words.some(
    ({ word: { phase, reason } }) => phase === 'Pending' || (phase === 'Running' && byTime.includes(reason)),
  )
  const times = [
    ...ends.map(at => at - now),
    ...(expiresAfterMs === undefined ? [] : [expiresAfterMs]),
    ...(isMore ? [nextWritesMs] : []),
    ...(waiting ? [nextWritesMs] : []),
  ].filter(ms => ms > 0)
  return times.length === 0 ? undefined : times.reduce((a, b) => Math.min(a, b))
}

function deadlineOf({ status, parsed }: JobView): readonly number[] {
  const begun = Date.parse(status.startTime ?? '')
  return Number.isNaN(begun) || !parsed.ok ? [] : [begun + parsed.job.ttlMs]
}
