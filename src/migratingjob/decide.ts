/** The next step of a Job whose pod moves. Pure: the facts and the time decide. The API server checks each step of the status. */
import { brokenJobRule, jobPodReady, jobRefusals } from '../api/migrating-job.ts'
import { conditionTypes } from '../api/reasons.ts'
import { refusedPauseMs } from '../kube/conditions.ts'
import type { Job } from '../kube/resources.ts'
import type { JobPlan, JobView, PodAction } from './view.ts'

type JobStatus = NonNullable<Job['status']>
type JobCondition = NonNullable<JobStatus['conditions']>[number]

interface Word {
  readonly reason: string
  readonly message: string
}

/** The default of Kubernetes. */
const defaultBackoffLimit = 6

export const isFinishedJob = ({ status }: Job): boolean =>
  isTrue(status, 'Complete') || isTrue(status, 'Failed')

/** @param now wall clock, ms since the epoch. */
export function planOf(view: JobView, now: number): JobPlan {
  const { job, pod } = view
  const before = job.status ?? {}
  // The pod of a Job that has failed must not run on; that of a complete one stays for its logs.
  if (isFinishedJob(job)) return { action: isTrue(before, 'Failed') ? ending(view) : 'keep', status: before }
  const status = counted(view, now)
  const announced = conditionIn(before, 'FailureTarget')
  if (announced !== undefined) return failed(view, status, announced, now)
  if (pod.type === 'ours' && pod.pod.status?.completion !== undefined)
    return { action: 'keep', status: complete(status, pod.pod.status.completion.at, now) }
  const failure = failureOf(view, status, now)
  // The status comes first: an operator that starts after the deletion must find the reason, and not begin the Job again.
  if (failure !== undefined)
    return {
      action: 'keep',
      status: withCondition(status, { type: 'FailureTarget', status: 'True', ...failure }, now),
    }
  const isKept = pod.type === 'taken' || pod.type === 'ending' || (pod.type === 'absent' && isSuspended(job))
  const next = withPodReady(suspension(view, status, now), view, now)
  const times = [untilDeadline(job, status, now), untilTried(view, next, now)].filter(ms => ms !== undefined)
  return {
    action: isKept ? 'keep' : 'write',
    status: next,
    ...(times.length > 0 && { requeueAfterMs: Math.min(...times) }),
  }
}

const untilTried = ({ refused }: JobView, { conditions }: JobStatus, now: number): number | undefined =>
  refused === undefined
    ? undefined
    : refusedPauseMs(
        conditions?.find(({ type }) => type === jobPodReady),
        now,
      )

const isSuspended = ({ spec }: Job): boolean => spec?.suspend === true

const ending = ({ pod }: JobView): PodAction => (pod.type === 'ours' ? 'delete' : 'keep')

/** Returns the status with the numbers of pods. */
function counted({ job, pod }: JobView, now: number): JobStatus {
  const { startTime, ...before } = job.status ?? {}
  const told = pod.type === 'ours' ? pod.pod.status : undefined
  const runs = told?.activePod !== undefined && told.state !== 'Suspended' && told.completion === undefined
  const ready = told?.conditions?.find(({ type }) => type === conditionTypes.ready)
  const failures = told?.failures ?? 0
  const isEnded = isSuspended(job) && !runs
  const started = startTime ?? timeOf(now)
  return {
    ...before,
    // As for any Job: its deadline does not run while it is suspended.
    ...(!isEnded && { startTime: started }),
    active: runs ? 1 : 0,
    ready: runs && ready?.status === 'True' ? 1 : 0,
    ...((before.failed ?? 0) + failures > 0 && { failed: Math.max(before.failed ?? 0, failures) }),
  }
}

function failureOf({ job, pod }: JobView, status: JobStatus, now: number): Word | undefined {
  const { backoffLimit = defaultBackoffLimit, activeDeadlineSeconds } = job.spec ?? {}
  const broken = brokenJobRule(job)
  // A later change costs no memory: the pod continues as it is, and PodReady says what is wrong.
  if (broken !== undefined && pod.type !== 'ours' && job.status?.startTime === undefined)
    return { reason: broken, message: jobRefusals[broken] }
  if ((status.failed ?? 0) > backoffLimit)
    return { reason: 'BackoffLimitExceeded', message: 'Job has reached the specified backoff limit' }
  const leftMs = untilDeadline(job, status, now)
  if (activeDeadlineSeconds !== undefined && leftMs !== undefined && leftMs <= 0)
    return { reason: 'DeadlineExceeded', message: 'Job was active longer than specified deadline' }
  return undefined
}

function untilDeadline({ spec }: Job, { startTime }: JobStatus, now: number): number | undefined {
  const seconds = spec?.activeDeadlineSeconds
  if (seconds === undefined || startTime === undefined) return undefined
  return Date.parse(startTime) + seconds * 1000 - now
}

/** The API server accepts the end of a Job only without pods. */
function failed(view: JobView, status: JobStatus, word: Word, now: number): JobPlan {
  if (view.pod.type === 'ours') return { action: 'delete', status }
  // A Job whose spec is refused has no time at which it was started.
  const begun = { startTime: timeOf(now), ...status, active: 0, ready: 0 }
  return { action: 'keep', status: withCondition(begun, { type: 'Failed', status: 'True', ...word }, now) }
}

function complete(status: JobStatus, at: string, now: number): JobStatus {
  const word = { reason: 'CompletionsReached', message: 'Reached expected number of succeeded pods' }
  const { startTime = timeOf(now) } = status
  // Clocks of nodes and operator may differ.
  const ended = Math.max(Date.parse(at) || now, Date.parse(startTime))
  const counts = { startTime, completionTime: timeOf(ended), active: 0, ready: 0, succeeded: 1 }
  const reached = withCondition(
    { ...status, ...counts },
    { type: 'SuccessCriteriaMet', status: 'True', ...word },
    now,
  )
  return withCondition(reached, { type: 'Complete', status: 'True', ...word }, now)
}

function suspension({ job, pod }: JobView, status: JobStatus, now: number): JobStatus {
  const told = pod.type === 'ours' ? pod.pod.status?.state : undefined
  const hasEnded = pod.type === 'absent' || told === 'Suspended'
  if (isSuspended(job) && hasEnded) {
    const word = { reason: 'JobSuspended', message: 'Job suspended' }
    return withCondition(status, { type: 'Suspended', status: 'True', ...word }, now)
  }
  if (isSuspended(job) || !isTrue(status, 'Suspended')) return status
  const word = { reason: 'JobResumed', message: 'Job resumed' }
  return withCondition(status, { type: 'Suspended', status: 'False', ...word }, now)
}

function withPodReady(status: JobStatus, { job, pod, refused }: JobView, now: number): JobStatus {
  const type = jobPodReady
  const not = (reason: string, message: string) =>
    withCondition(status, { type, status: 'False', reason, message }, now)
  if (refused !== undefined) return not('Refused', refused)
  if (pod.type === 'taken')
    return not('NameTaken', `there is a MigratingPod of this name of ${pod.owner}: delete it, or the Job`)
  const ready =
    pod.type === 'ours'
      ? pod.pod.status?.conditions?.find(each => each.type === conditionTypes.ready)
      : undefined
  if (ready === undefined) return status
  const broken = brokenJobRule(job)
  const { reason, message } =
    broken === undefined
      ? ready
      : { reason: broken, message: `${jobRefusals[broken]}; the pod continues as it is` }
  return withCondition(status, { type, status: ready.status, reason, message }, now)
}

type NewCondition = Pick<JobCondition, 'type' | 'status' | 'reason' | 'message'>

/** Without change, the status is the same object of values. */
function withCondition(status: JobStatus, wanted: NewCondition, now: number): JobStatus {
  const conditions = status.conditions ?? []
  const had = conditions.find(({ type }) => type === wanted.type)
  const isSame =
    had?.status === wanted.status && had.reason === wanted.reason && had.message === wanted.message
  if (isSame) return status
  const at = timeOf(now)
  const lastTransitionTime = had?.status === wanted.status ? had.lastTransitionTime : undefined
  const next = { ...wanted, lastProbeTime: at, lastTransitionTime: lastTransitionTime ?? at }
  return { ...status, conditions: [...conditions.filter(({ type }) => type !== wanted.type), next] }
}

function conditionIn(status: JobStatus, type: string): Word | undefined {
  const found = status.conditions?.find(each => each.type === type && each.status === 'True')
  return found && { reason: found.reason ?? '', message: found.message ?? '' }
}

const isTrue = (status: JobStatus | undefined, type: string): boolean =>
  status?.conditions?.some(each => each.type === type && each.status === 'True') ?? false

/** Times of Jobs have whole seconds. */
const timeOf = (ms: number): string => `${new Date(ms).toISOString().slice(0, 19)}Z`
