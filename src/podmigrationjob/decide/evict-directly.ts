/** The mode `EvictDirectly`, after admission. */
import type { ParsedJob } from '../../api/parse-pod-migration-job.ts'
import { jobConditions } from '../../api/pod-migration-job.ts'
import type { JobView } from './view.ts'
import { conditionOf, failed, type Word } from './word.ts'

export const evictReasons = {
  evicting: 'Evicting',
  failed: 'FailedEvict',
  complete: 'EvictComplete',
} as const

/**
 * The status announces the eviction before it is requested. So a pod that is gone was evicted by the job if the condition is there, and went
 * by itself if not, whenever the operator ended.
 */
export function evictDirectly(view: JobView, job: ParsedJob, isTimedOut: boolean): Word {
  const { pod, status } = view
  const eviction = conditionOf(status, jobConditions.eviction)
  const name = `${job.pod.namespace}/${job.pod.name}`
  if (pod === undefined)
    return eviction === undefined
      ? failed('MissingPod', `pod ${name} was gone before it could be evicted`)
      : {
          ...{ phase: 'Succeed', reason: evictReasons.complete, message: `pod ${name} is gone` },
          condition: { type: jobConditions.eviction, status: 'True' },
        }
  const isUnanswered = eviction === undefined || eviction.reason === evictReasons.failed
  if (job.isAborted && isUnanswered && !pod.isTerminating)
    return { phase: 'Aborted', reason: 'Aborted', message: 'the user has aborted the job; the pod stays' }
  if (isTimedOut)
    return failed(
      'Timeout',
      `the pod was not gone within the ttl: ${status.message ?? 'nothing has happened'}`,
    )
  if (pod.isTerminating)
    return eviction === undefined
      ? failed('MissingPod', `pod ${name} was deleted before it could be evicted`)
      : evicting('the pod is being deleted')
  return (
    beforeEviction(view, job) ??
    (eviction === undefined ? evicting('the eviction is requested') : again(view, pod))
  )
}

/** Returns why the eviction waits although the job is admitted. */
export function beforeEviction({ isRolling }: JobView, job: ParsedJob): Word | undefined {
  if (job.isPaused) return { phase: 'Running', reason: 'Paused', message: 'the job is paused' }
  if (isRolling && !job.skipGates.has('RollingOut'))
    return {
      ...{ phase: 'Running', reason: 'RollingOut' },
      message: 'waits until the workload of the pod has rolled out its change',
    }
  return undefined
}

const evicting = (message: string): Word => ({
  ...{ phase: 'Running', reason: evictReasons.evicting, message },
  condition: { type: jobConditions.eviction, status: 'False' },
})

/** The word stays as it is, and the eviction is requested, perhaps once more. */
const again = (view: JobView, pod: NonNullable<JobView['pod']>): Word => {
  const { reason = evictReasons.evicting, message = '' } =
    conditionOf(view.status, jobConditions.eviction) ?? {}
  return { phase: 'Running', reason, message, action: { type: 'evict', view, pod } }
}
