import { isFinishedJob, jobConditions, type PodMigrationJob } from '../../api/pod-migration-job.ts'
import { isKubeError } from '../../kube/errors.ts'
import { about, type Finding, listed } from './finding.ts'
import type { Installation } from './installation.ts'
import { unseenMs } from './seen.ts'
import { unreadable } from './unreadable.ts'

const { ok, broken, note } = about('moves')

type Seen = Pick<Installation, 'jobs' | 'operator' | 'crds' | 'identity'>

const what = 'podmigrationjobs'
const component = '`components: [../deploy/pod-migration-jobs]`'

/** The cures for a job that waits, by its reason. Jobs that wait for a budget begin by themselves. */
const cures: Readonly<Record<string, string>> = {
  Paused: 'set spec.paused of the job to false',
  Disabled: 'set enabled of the configuration to true: ConfigMap understudy-migration-controller',
  DryRun: 'set dryRun of the configuration to false: ConfigMap understudy-migration-controller',
  InvalidConfiguration: 'repair the ConfigMap understudy-migration-controller as the message says',
  DisruptionBudget: 'make more pods of the workload ready, or let its PodDisruptionBudget allow more',
  UnavailableBudget: 'make the pods of the workload ready, or raise maxUnavailablePerWorkload',
  RollingOut: 'let the rollout of the workload end, or skip the gate RollingOut',
}

/** Jobs that wait for these never begin by themselves. */
const forUsers: ReadonlySet<string> = new Set(['InvalidConfiguration'])

/** Findings about PodMigrationJobs and the component that serves them. */
export function jobsFindings(seen: Seen): readonly Finding[] {
  const { jobs, identity } = seen
  const now = identity.ok ? identity.value.now : Date.now()
  const installed = componentFinding(seen)
  if (!jobs.ok)
    return isKubeError(jobs.error, 'NotFound')
      ? installed
      : [...installed, unreadable('moves', what, jobs.error)]
  const open = jobs.value.filter(job => !isFinishedJob(job)).map(job => ofOpen(job, now))
  const failed = jobs.value.flatMap(ofFailed)
  return [...installed, ...listed(open, 'moves'), ...listed(failed, 'moves')]
}

/** The kind and the argument of the operator belong together: without one of them, jobs wait for ever. */
function componentFinding({ operator, crds }: Seen): readonly Finding[] {
  if (!operator.ok) return []
  const args = operator.value.spec?.template.spec?.containers[0]?.args ?? []
  const isServed = args.includes('--pod-migration-jobs')
  const crd = crds.podmigrationjobs
  if (!crd.ok && !isKubeError(crd.error, 'NotFound')) return []
  if (crd.ok === isServed)
    return [
      ok(
        what,
        isServed
          ? 'the component is installed'
          : `the component is not installed; an overlay with ${component} adds it`,
      ),
    ]
  return [
    isServed
      ? broken(
          what,
          'the operator serves jobs, but the cluster does not have the kind',
          `apply an overlay with ${component}`,
        )
      : broken(
          what,
          'the cluster has the kind, but the operator ignores jobs: it runs without --pod-migration-jobs',
          `apply an overlay with ${component}, or delete the kind`,
        ),
  ]
}

function ofOpen(job: PodMigrationJob, now: number): Finding {
  const { metadata, status = {} } = job
  const about = `job ${metadata.name}`
  if (status.phase === undefined)
    return now - Date.parse(metadata.creationTimestamp ?? '') < unseenMs
      ? note(about, 'is new: no operator has seen it yet')
      : broken(
          about,
          'no operator has seen it: no pod is taken away',
          `see that an operator leads, with ${component}`,
        )
  const arbitrated = status.conditions?.find(({ type }) => type === jobConditions.arbitrated)
  const { reason = 'Unknown', message = '' } =
    status.phase === 'Pending' && arbitrated !== undefined ? arbitrated : status
  const text = `${status.phase}: ${reason}: ${message}`
  return forUsers.has(reason)
    ? broken(about, text, cures[reason] ?? 'do as the message says')
    : note(about, text, cures[reason])
}

function ofFailed({ metadata, status }: PodMigrationJob): Finding[] {
  return status?.phase === 'Failed'
    ? [note(`job ${metadata.name}`, `failed: ${status.reason ?? 'Unknown'}: ${status.message ?? ''}`)]
    : []
}
