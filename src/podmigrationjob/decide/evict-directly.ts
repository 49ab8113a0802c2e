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
  /** An annotation asks the pod's controller; an abort is in time. */
  softly: 'SoftEvicting',
  failed: 'FailedEvict',
  complete: 'EvictComplete',
} as const

/** Names the job in the annotation of a soft eviction. */
export const initiatorOf = ({ uid }: Pick<JobView, 'uid'>): string => `PodMigrationJob/${uid}`

/** A request that a pod still carries is taken back before its job ends: its controller would follow it later. */
export function evictDirectly(view: JobView, job: ParsedJob, isTimedOut: boolean, rules: Rules): Word {
  const word = removed(view, job, isTimedOut, rules)
  const { pod } = view
  const isEnd = word.phase === 'Failed' || word.phase === 'Aborted'
  if (!isEnd || pod === undefined || pod.isTerminating) return word
  if (pod.softEvictionBy === initiatorOf(view))
    return { ...aborting, action: { type: 'withdraw', view, pod, end: word } }
  return view.eviction === 'unanswered' ? aborting : word
}

/**
 * The status announces the eviction before it is requested. So a pod that is gone was evicted by the job if the condition is there, and went
 * by itself if not, whenever the operator ended.
 */
function removed(view: JobView, job: ParsedJob, isTimedOut: boolean, rules: Rules): Word {
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
  if (eviction === undefined) return coming
  const isSoft = rules.config.ok && rules.config.args.evictionPolicy === 'SoftEviction'
  return isSoft && pod.softEvictionBy === initiatorOf(view) ? softly : again(view, pod)
}

/** A job that ends says that the pod stays, so it waits until that is certain. */
function unlessAccepted({ eviction, status, seenForMs }: JobView, end: Word): Word {
  // The last leader has written it, and the cache of pods may not show yet that the pod goes.
  const isSaid = conditionOf(status, jobConditions.eviction)?.reason === evictReasons.evicting
  if (eviction === 'none' && (!isSaid || seenForMs >= settlesMs)) return end
  return aborting
}

const aborting: Word = {
  ...{ phase: 'Running', reason: 'Aborting' },
  message: 'the operator looks whether the eviction was accepted, or takes its request back',
}

const coming: Word = {
  ...{ phase: 'Running', reason: evictReasons.coming, message: 'the eviction is requested' },
  condition: { type: jobConditions.eviction, status: 'False' },
}

const softly: Word = {
  ...{ phase: 'Running', reason: evictReasons.softly },
  message: 'an annotation asks the controller of the pod to remove it',
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
