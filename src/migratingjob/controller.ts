import { isManagedJob } from '../api/migrating-job.ts'
import { type MigratingPod, migratingPods } from '../api/migrating-pod.ts'
import type { Api } from '../kube/api.ts'
import type { Clock } from '../kube/clock.ts'
import { isEqual } from '../kube/equal.ts'
import { isKubeError, messageOf } from '../kube/errors.ts'
import type { PassContext } from '../kube/manager-types.ts'
import { controllerOf } from '../kube/owner.ts'
import type { Result } from '../kube/reconcile.ts'
import { type Job, jobs } from '../kube/resources.ts'
import type { Store } from '../kube/store.ts'
import { planOf } from './decide.ts'
import { newPod, podSpecOf, updatedPod } from './own-pod.ts'
import type { JobView, PodAction, PodFact } from './view.ts'

export interface MigratingJobDeps {
  readonly jobs: Pick<Store<Job>, 'get'>
  readonly pods: Pick<Store<MigratingPod>, 'get'>
  readonly clock: Pick<Clock, 'now'>
}

/** Makes one pass over one Job: it keeps the MigratingPod of the Job, and reports what becomes of it as a Job controller does. */
export async function reconcile(
  deps: MigratingJobDeps,
  key: string,
  { api, log, signal }: Pick<PassContext, 'api' | 'log' | 'signal'>,
): Promise<Result> {
  const job = deps.jobs.get(key)
  if (job === undefined || !isManagedJob(job) || job.metadata.deletionTimestamp !== undefined) return {}
  const now = deps.clock.now()
  const view: JobView = { job, pod: podFactOf(job, deps.pods.get(key)) }
  const plan = planOf(view, now)
  const refused = await perform(api, plan.action, view, signal)
  if (refused !== undefined) log.warn({ problem: refused }, 'the MigratingPod of the Job is refused')
  const { status, requeueAfterMs } = refused === undefined ? plan : planOf({ ...view, refused }, now)
  if (!isEqual(status, job.status ?? {})) await writeStatus(api, job, status, signal)
  return requeueAfterMs === undefined ? {} : { requeueAfterMs }
}

function podFactOf({ metadata: { uid } }: Job, pod: MigratingPod | undefined): PodFact {
  if (pod === undefined) return { type: 'absent' }
  const owner = controllerOf(pod)
  if (pod.metadata.deletionTimestamp !== undefined) return { type: 'ending' }
  if (owner?.uid === uid) return { type: 'ours', pod }
  return { type: 'taken', owner: owner === undefined ? 'a user' : `${owner.kind} ${owner.name}` }
}

/** @returns why the API server has refused the MigratingPod; undefined: it has not. */
async function perform(
  api: Pick<Api, 'create' | 'replace' | 'delete'>,
  action: PodAction,
  { job, pod }: JobView,
  signal: AbortSignal,
): Promise<string | undefined> {
  const { namespace = '', name } = job.metadata
  if (action === 'keep') return undefined
  try {
    if (action === 'delete') {
      if (pod.type === 'ours') await remove(api, pod.pod, signal)
      return undefined
    }
    const spec = podSpecOf(job)
    if (pod.type !== 'ours') await api.create(migratingPods, newPod(job, spec), { namespace, signal })
    else {
      const next = updatedPod(pod.pod, spec)
      if (next !== undefined) await api.replace(migratingPods, { namespace, name }, next, { signal })
    }
    return undefined
  } catch (error) {
    if (isKubeError(error, 'Invalid', 'Forbidden')) return messageOf(error)
    // Another operator has made it, or a user; the cache shows it soon.
    if (isKubeError(error, 'AlreadyExists')) return undefined
    throw error
  }
}

const remove = async (
  api: Pick<Api, 'delete'>,
  { metadata: { namespace, name, uid, resourceVersion } }: MigratingPod,
  signal: AbortSignal,
): Promise<void> => {
  await api
    .delete(migratingPods, { namespace, name }, { uid, resourceVersion }, { signal })
    .catch((error: unknown) => {
      if (!isKubeError(error, 'NotFound')) throw error
    })
}

/** With the version that was decided from: after a change, the next pass decides again. */
async function writeStatus(
  api: Pick<Api, 'replace'>,
  job: Job,
  status: Job['status'],
  signal: AbortSignal,
): Promise<void> {
  const { namespace = '', name } = job.metadata
  const body: Job = { ...job, apiVersion: 'batch/v1', kind: jobs.kind, ...(status && { status }) }
  await api
    .replace(jobs, { namespace, name }, body, { subresource: 'status', signal })
    .catch((error: unknown) => {
      if (!isKubeError(error, 'NotFound')) throw error
    })
}
