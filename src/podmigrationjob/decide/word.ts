/** The word of a rule about a job: the phase and reason that it gets, and what is to be done. */
import { type JobPhase, jobConditions, type PodMigrationJobStatus } from '../../api/pod-migration-job.ts'
import { type Condition, conditionLimits, setCondition } from '../../kube/conditions.ts'
import { cutTo } from '../../kube/object.ts'
import type { Action, JobView } from './view.ts'

export interface Word {
  readonly phase: JobPhase
  readonly reason: string
  readonly message: string
  /** The condition that changes with it; its reason and message are those of the word. */
  readonly condition?: Pick<Condition, 'type' | 'status'>
  /** Conditions with reasons of their own. */
  readonly also?: readonly Pick<Condition, 'type' | 'status' | 'reason' | 'message'>[]
  readonly more?: Partial<PodMigrationJobStatus>
  /** A field that is not true any more. */
  readonly forget?: keyof PodMigrationJobStatus
  readonly action?: Action
}

export const conditionOf = (
  { conditions = [] }: PodMigrationJobStatus,
  type: string,
): Condition | undefined => conditions.find(condition => condition.type === type)

export const failed = (reason: string, message: string): Word => ({ phase: 'Failed', reason, message })

/** How a job ends that is called off. */
export const aborted = ({ preemptor }: Pick<JobView, 'preemptor'>, what: string): Word =>
  preemptor?.isOver === true
    ? { phase: 'Aborted', reason: 'PreemptionOver', message: 'the pod need not give way any more' }
    : { phase: 'Aborted', reason: 'Aborted', message: `the user has aborted the job${what}` }

export const waits = (reason: string, message: string): Word => ({
  ...{ phase: 'Pending', reason, message },
  condition: { type: jobConditions.arbitrated, status: 'False' },
})

const isOver = (phase: JobPhase) => phase === 'Succeed' || phase === 'Failed' || phase === 'Aborted'

/**
 * The place of the job in the budgets. At its first look the operator may not know node and workload yet, so the place is that of the
 * admission; what is not known even then is filled in when it is.
 */
function sourceOf({ status, pod }: JobView, begins: boolean): PodMigrationJobStatus['source'] {
  if (pod === undefined) return status.source
  const found = {
    uid: pod.uid,
    ...(pod.node !== undefined && { nodeName: pod.node }),
    ...(pod.owner.type === 'workload' && { workload: pod.owner.key }),
  }
  return begins ? found : { ...found, ...status.source }
}

/** Returns the status that follows the word. A word that repeats the status gives an equal one. */
export function statusAfter(view: JobView, word: Word, now: number): PodMigrationJobStatus {
  const { status, generation } = view
  const { phase, reason, message, condition, also = [], more, forget } = word
  const changes = [...also, ...(condition ? [{ ...condition, reason, message }] : [])]
  const at = new Date(now).toISOString()
  const begins = phase === 'Running' && status.phase !== 'Running'
  const source = sourceOf(view, begins)
  const kept = Object.fromEntries(Object.entries(status).filter(([field]) => field !== forget))
  return {
    ...kept,
    ...(source && { source }),
    phase,
    // The API server would refuse a status with a longer text, such as the answer of a webhook.
    ...{ reason: cutTo(reason, conditionLimits.reason), message: cutTo(message, conditionLimits.message) },
    ...(begins && { startTime: at }),
    ...(isOver(phase) && { completionTime: at, status: 'Complete' }),
    ...(condition && !isOver(phase) && { status: condition.type }),
    ...more,
    ...(changes.length > 0 && {
      conditions: changes.reduce(
        (conditions, change) => setCondition(conditions, { ...change, now, observedGeneration: generation }),
        status.conditions ?? [],
      ),
    }),
  }
}
