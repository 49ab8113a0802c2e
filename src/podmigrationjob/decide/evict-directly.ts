/** The mode `EvictDirectly`, after admission. */
import type { ParsedJob } from '../../api/parse-pod-migration-job.ts'
import { jobConditions } from '../../api/pod-migration-job.ts'
import { settlesMs } from './arbitrate.ts'
import { beforeAct, type Rules, refusedSince } from './before-act.ts'
import type { JobView } from './view.ts'
import { conditionOf, failed, type Word } from './word.ts'

export const evictReasons = {
  /** Announced; an abort is in time. */
  coming: 'EvictionComing',
  /** Accepted. */
  evicting: 'Evicting',
  failed: 'FailedEvict',
  complete: 'EvictComplete',
} as const

/**
 * The status announces the eviction before it is requested. So a pod that is gone was evicted by the job if the condition is there, and went
 * by itself if not, whenever the operator ended.
 */
export function evictDirectly(view: JobView, job: ParsedJob, isTimedOut: boolean, rules: Rules): Word {
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
  if (job.isAborted && view.eviction !== 'accepted' && !pod.isTerminating)
    return unlessAccepted(view, {
      ...{ phase: 'Aborted', reason: 'Aborted', message: 'the user has aborted the job; the pod stays' },
    })
  if (isTimedOut)
    return failed(
      'Timeout',
      `the pod was not gone within the ttl: ${status.message ?? 'nothing has happened'}`,
    )
  if (pod.isTerminating)
    return eviction === undefined
      ? failed('MissingPod', `pod ${name} was deleted before it could be evicted`)
      : evicting('the pod is being deleted')
  // The cache of pods is behind.
  if (view.eviction === 'accepted') return evicting('the pod is being deleted')
  const refusal = refusedSince(view, job, rules)
  if (refusal !== undefined) return unlessAccepted(view, refusal)
  const held = beforeAct(view, job, rules)
  if (held !== undefined) return held
  return eviction === undefined ? coming : again(view, pod)
}

/** A job that ends says that the pod stays, so it waits until that is certain. */
function unlessAccepted({ eviction, status, seenForMs }: JobView, end: Word): Word {
  // The last leader has written it, and the cache of pods may not show yet that the pod goes.
  const isSaid = conditionOf(status, jobConditions.eviction)?.reason === evictReasons.evicting
  if (eviction === 'none' && (!isSaid || seenForMs >= settlesMs)) return end
  return {
    ...{ phase: 'Running', reason: 'Aborting' },
    message: 'the operator looks whether the eviction was accepted',
  }
}

const coming: Word = {
  ...{ phase: 'Running', reason: evictReasons.coming, message: 'the eviction is requested' },
  condition: { type: jobConditions.eviction, status: 'False' },
}

const evicting = (message: string): Word => ({
  ...{ phase: 'Running', reason: evictReasons.evicting, message },
  condition: { type: jobConditions.eviction, status: 'False' },
})

/** The word stays as it is, and the eviction is requested, perhaps once more. */
const again = (view: JobView, pod: NonNullable<JobView['pod']>): Word => {
  const { reason = evictReasons.coming, message = '' } =
    conditionOf(view.status, jobConditions.eviction) ?? {}
  return { phase: 'Running', reason, message, action: { type: 'evict', view, pod } }
}
