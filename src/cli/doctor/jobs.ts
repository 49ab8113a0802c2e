import { isFinishedJob, jobConditions, type PodMigrationJob } from '../../api/pod-migration-job.ts'
import { isKubeError } from '../../kube/errors.ts'
import { about, type Finding, listed } from './finding.ts'
import type { Installation } from './installation.ts'
import { type Installer, installerOf } from './installer.ts'
import { unseenMs } from './seen.ts'
import { unreadable } from './unreadable.ts'

const { ok, broken, note } = about('moves')

type Seen = Pick<Installation, 'jobs' | 'operator' | 'crds' | 'identity'>

const what = 'podmigrationjobs'

/** Returns the change that adds the component to an installation. */
function additionOf({ type }: Installer): string {
  switch (type) {
    case 'Kustomize':
      return 'an overlay with `components: [../deploy/pod-migration-jobs]`'
    case 'Helm':
      return 'the value `podMigrationJobs.enabled=true` of the chart'
    default:
      return type satisfies never
  }
}

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
  const addition = additionOf(installerOf(seen))
  const installed = componentFinding(seen, addition)
  if (!jobs.ok)
    return isKubeError(jobs.error, 'NotFound')
      ? installed
      : [...installed, unreadable('moves', what, jobs.error)]
  const open = jobs.value.filter(job => !isFinishedJob(job)).map(job => ofOpen(job, now, addition))
  const failed = jobs.value.flatMap(ofFailed)
  return [...installed, ...listed(open, 'moves'), ...listed(failed, 'moves')]
}

/** The kind and the argument of the operator belong together: without one of them, jobs wait for ever. */
function componentFinding({ operator, crds }: Seen, addition: string): readonly Finding[] {
  if (!operator.ok) return []
  const args = operator.value.spec?.template.spec?.containers[0]?.args ?? []
  const isServed = args.includes('--pod-migration-jobs')
  const crd = crds.podmigrationjobs
  if (!crd.ok && !isKubeError(crd.error, 'NotFound')) return []
  if (crd.ok === isServed)
    return [
      ok(
        what,
        isServed ? 'the component is installed' : `the component is not installed; ${addition} adds it`,
      ),
    ]
  return [
    isServed
      ? broken(what, 'the operator serves jobs, but the cluster does not have the kind', `apply ${addition}`)
      : broken(
          what,
          'the cluster has the kind, but the operator ignores jobs: it runs without --pod-migration-jobs',
          `apply ${addition}, or delete the kind`,
        ),
  ]
}

function ofOpen(job: PodMigrationJob, now: number, addition: string): Finding {
  const { metadata, status = {} } = job
  const about = `job ${metadata.name}`
  if (status.phase === undefined)
    return now - Date.parse(metadata.creationTimestamp ?? '') < unseenMs
      ? note(about, 'is new: no operator has seen it yet')
      : broken(
          about,
          'no operator has seen it: no pod is taken away',
          `see that an operator leads, with ${addition}`,
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
