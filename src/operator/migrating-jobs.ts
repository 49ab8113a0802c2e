import { isManagedJob } from '../api/migrating-job.ts'
import type { MigratingPod } from '../api/migrating-pod.ts'
import type { Cache } from '../kube/cache-set.ts'
import type { Manager } from '../kube/manager.ts'
import { watch } from '../kube/manager-types.ts'
import { keyOf } from '../kube/object.ts'
import { controllersIn } from '../kube/owner.ts'
import { type Job, jobs as jobResource } from '../kube/resources.ts'
import { reconcile } from '../migratingjob/controller.ts'
import type { OperatorOptions } from './options.ts'

/** Adds the controller of Jobs whose pods move to the work of the leader, if the operator has been started with it. */
export function leadMigratingJobs(
  manager: Manager,
  { migratingJobs: isWanted }: Pick<OperatorOptions, 'migratingJobs'>,
  pods: Cache<MigratingPod>,
): void {
  if (!isWanted) return
  const jobs = manager.cache(jobResource, { awaited: 'not', transform: ourJobsOnly })
  const deps = { jobs, pods, clock: manager.clock }
  const isOurs = (key: string) => {
    const job = jobs.get(key)
    return job !== undefined && isManagedJob(job)
  }
  manager.controller({
    name: 'migratingjob',
    for: jobs,
    watches: [
      // One of another owner is in the way of the Job of its name.
      watch(pods, change => [...controllersIn(change, jobResource), keyOf(change.object)].filter(isOurs)),
    ],
    reconcile: (key, context) => reconcile(deps, key, context),
  })
}

/** The API server selects Jobs by no field but their name, so all of the cluster arrive: of others, only the name is kept. */
function ourJobsOnly(job: Job): Job {
  const { managedFields: _, ...metadata } = job.metadata
  if (isManagedJob(job)) return { ...job, metadata }
  const { name, namespace, uid, resourceVersion } = metadata
  return { metadata: { name, ...(namespace !== undefined && { namespace }), uid, resourceVersion } }
}
