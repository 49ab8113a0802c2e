/** The mode `Live`, after admission: a Migration moves the pod with its memory, and the job follows it. */
import type { ParsedJob } from '../../api/parse-pod-migration-job.ts'
import { jobConditions } from '../../api/pod-migration-job.ts'
import { settlesMs } from './arbitrate.ts'
import { beforeAct, type Rules, refusedSince } from './before-act.ts'
import type { Action, JobView, LiveFacts } from './view.ts'
import { failed, type Word } from './word.ts'

type Present = Extract<LiveFacts, { type: 'present' }>

/** The name is the same after each restart, so that no job has two Migrations. */
export const migrationNameOf = ({ uid }: Pick<JobView, 'uid'>): string => `job-${uid}`

export function live(view: JobView, job: ParsedJob, isTimedOut: boolean, rules: Rules): Word {
  const { live: facts } = view
  switch (facts.type) {
    case 'foreign':
      return failed('MigrationNameTaken', `another Migration has the name ${migrationNameOf(view)}`)
    case 'absent':
      return withoutMigration(view, job, isTimedOut, { ...rules, absentForMs: facts.seenForMs })
    case 'present':
      return followed(view, job, isTimedOut, facts)
    default:
      return facts satisfies never
  }
}

function withoutMigration(
  view: JobView,
  job: ParsedJob,
  isTimedOut: boolean,
  { absentForMs, ...rules }: Rules & { readonly absentForMs: number },
): Word {
  const { status, pod } = view
  const { migration } = status
  if (pod === undefined || pod.isTerminating)
    return failed('MissingPod', 'the pod was gone before its move had begun, or had ended otherwise')
  const isGone = migration === undefined || migration.uid !== undefined
  // The cache may not show yet that the last leader has created it.
  const isCertain = isGone || absentForMs >= settlesMs
  if (job.isAborted && isCertain)
    return { phase: 'Aborted', reason: 'Aborted', message: 'the user has aborted the job; the pod stays' }
  if (isTimedOut && isCertain)
    return failed('Timeout', `the pod had not moved within the ttl: ${status.message ?? ''}`)
  if (migration?.uid !== undefined)
    return failed('MigrationDeleted', 'the Migration of the job was deleted; the pod stays')
  if (job.isAborted || isTimedOut)
    return moving('Aborting', 'the operator looks whether its Migration exists')
  const refusal = refusedSince(view, job, rules)
  if (refusal !== undefined)
    return isCertain ? refusal : moving('Aborting', 'the operator looks whether its Migration exists')
  const waits = beforeAct(view, job, rules)
  if (waits !== undefined) return waits
  const name = migrationNameOf(view)
  const word = moving('MigrationComing', `Migration ${job.pod.namespace}/${name} is created`)
  return migration === undefined
    ? { ...word, more: { migration: { name } } }
    : { ...word, action: { type: 'createMigration', view, pod, name } }
}

function followed(view: JobView, job: ParsedJob, isTimedOut: boolean, facts: Present): Word {
  const { namespace } = job.pod
  const { uid, phase = 'Pending', reason, message, target } = facts
  const more = {
    migration: { name: migrationNameOf(view), uid },
    ...(target?.node !== undefined && { nodeName: target.node }),
    ...(target && { podRef: { namespace, name: target.name, uid: target.uid } }),
  }
  switch (phase) {
    case 'Succeeded':
      return {
        ...{ phase: 'Succeed', reason, message, more },
        condition: { type: jobConditions.migrated, status: 'True' },
      }
    case 'Failed':
      return {
        ...{ ...failed(reason, message), more },
        condition: { type: jobConditions.migrated, status: 'False' },
      }
    case 'Switching':
      return { ...moving(reason, message), more }
    case 'Pending':
    case 'Reserving':
    case 'Preparing':
    case 'Stopping': {
      if (!job.isAborted && !isTimedOut) return { ...moving(reason, message), more }
      const why = job.isAborted ? 'the user has aborted the job' : 'its ttl is over'
      const action = callOff(view, facts)
      return { ...moving('Aborting', `the Migration is called off: ${why}`), more, ...(action && { action }) }
    }
    default:
      return phase satisfies never
  }
}

const moving = (reason: string, message: string): Word => ({
  ...{ phase: 'Running', reason, message },
  condition: { type: jobConditions.migrated, status: 'False' },
})

/** Deletes the Migration as long as that calls the move off. Undefined: there is none, or it is too late. */
export function callOff(view: JobView, facts: LiveFacts): Action | undefined {
  if (facts.type !== 'present' || !view.parsed.ok) return undefined
  const { phase, uid, resourceVersion } = facts
  if (phase === 'Switching' || phase === 'Succeeded' || phase === 'Failed') return undefined
  const { namespace } = view.parsed.job.pod
  return { type: 'deleteMigration', view, namespace, name: migrationNameOf(view), uid, resourceVersion }
}
