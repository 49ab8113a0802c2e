import type { BackupPodSet } from '../../api/backuppodset.ts'
import type { Migration } from '../../api/migration.ts'
import type { MigrationControllerArgs } from '../../api/migration-controller-args.ts'
import { parseJob } from '../../api/parse-pod-migration-job.ts'
import { isFinishedJob, type PodMigrationJob, reservationLabel } from '../../api/pod-migration-job.ts'
import type { Clock } from '../../kube/clock.ts'
import { keyOfRef } from '../../kube/object.ts'
import { isReady } from '../../kube/ready.ts'
import type { Pod, Resource } from '../../kube/resources.ts'
import type { Store } from '../../kube/store.ts'
import type { Since } from '../../slot/observe/since.ts'
import { migrationNameOf } from '../decide/live.ts'
import { reservationNameOf } from '../decide/reservation-first.ts'
import type { EvictionRequest, JobView, LiveFacts, ReservationFacts } from '../decide/view.ts'
import type { History, World } from '../decide/world.ts'
import { disruptionBudgetsIn, podFacts, workloadFacts } from './pod-facts.ts'
import type { WorldStores } from './world-caches.ts'

/** A job as the caches show it, or as this process has written it since. */
export interface KnownJob {
  readonly resource: Resource<PodMigrationJob>
  readonly job: PodMigrationJob
}

export interface ObserveDeps {
  readonly world: WorldStores
  readonly sets: Store<BackupPodSet>
  readonly migrations: Store<Migration>
  readonly since: Pick<Since, 'pass'>
  readonly clock: Pick<Clock, 'monotonic'>
  readonly requests: { of(uid: string): EvictionRequest }
}

export interface Observed {
  readonly views: readonly JobView[]
  readonly world: World
}

/** Returns all jobs that are not being deleted, and the world around them; it reads caches only. */
export function observe(
  jobs: readonly KnownJob[],
  defaults: Pick<MigrationControllerArgs, 'defaultJobTtlMs' | 'defaultJobMode'>,
  deps: ObserveDeps,
): Observed {
  const stores = { ...deps.world, sets: deps.sets }
  const pods = podFacts(stores)
  const world: World = {
    pods,
    workloads: workloadFacts(pods, stores),
    disruptionBudgets: disruptionBudgetsIn(deps.world.disruptionBudgets.list()),
    history: historyOf(jobs),
  }
  const since = deps.since.pass()
  const heldForMs = (key: string) => deps.clock.monotonic() - (since(key, true) ?? deps.clock.monotonic())
  const views = jobs
    .filter(({ job }) => job.metadata.deletionTimestamp === undefined)
    .map(known => viewOf(known, defaults, world, deps, heldForMs))
  return { views, world }
}

function viewOf(
  { resource, job }: KnownJob,
  defaults: Parameters<typeof parseJob>[1],
  world: World,
  { migrations, world: stores, requests }: Pick<ObserveDeps, 'migrations' | 'world' | 'requests'>,
  heldForMs: (key: string) => number,
): JobView {
  const { name, uid, resourceVersion, generation = 0, creationTimestamp } = job.metadata
  const { status = {} } = job
  // A job that runs keeps its mode when the configuration gets another default.
  const parsed = parseJob(job, { ...defaults, ...(status.mode && { defaultJobMode: status.mode }) })
  const wanted = parsed.ok ? parsed.job.pod : undefined
  const present = wanted && world.pods.get(keyOfRef(wanted))
  const expected = status.source?.uid ?? wanted?.uid
  const pod = present !== undefined && (expected ?? present.uid) === present.uid ? present : undefined
  const workload = pod?.owner.type === 'workload' ? world.workloads.get(pod.owner.key) : undefined
  const migration =
    parsed.ok && parsed.job.mode === 'Live'
      ? migrations.get(keyOfRef({ namespace: parsed.job.pod.namespace, name: migrationNameOf({ uid }) }))
      : undefined
  const reserved =
    parsed.ok && parsed.job.mode === 'ReservationFirst'
      ? stores.pods.get(keyOfRef({ namespace: parsed.job.pod.namespace, name: reservationNameOf({ uid }) }))
      : undefined
  return {
    ...{ resource, key: `${resource.group}/${name}`, name, uid, resourceVersion, generation },
    createdAt: Date.parse(creationTimestamp ?? '') || 0,
    ...{ parsed, status, pod, isRolling: workload?.isRolling === true },
    hasUnready: (workload?.unhealthy.size ?? 0) > 0,
    // No rule needs it for jobs that have ended.
    seenForMs: isFinishedJob(job) ? 0 : heldForMs(`${uid}/seen`),
    eviction: requests.of(uid),
    live: liveFacts(migration, uid, () => heldForMs(`${uid}/absent`)),
    reservation: reservationFacts(reserved, uid, () => heldForMs(`${uid}/unreserved`)),
  }
}

function liveFacts(migration: Migration | undefined, job: string, absentForMs: () => number): LiveFacts {
  if (migration === undefined) return { type: 'absent', seenForMs: absentForMs() }
  const { uid, resourceVersion, ownerReferences = [] } = migration.metadata
  if (!ownerReferences.some(owner => owner.uid === job)) return { type: 'foreign' }
  const { phase, target, conditions = [] } = migration.status ?? {}
  const [{ reason, message } = { reason: 'Pending', message: 'its Migration waits' }] = conditions
  return { type: 'present', uid, resourceVersion, phase, reason, message, target }
}

function reservationFacts(pod: Pod | undefined, job: string, absentForMs: () => number): ReservationFacts {
  if (pod === undefined) return { type: 'absent', seenForMs: absentForMs() }
  const { uid, resourceVersion, labels, deletionTimestamp, ownerReferences = [] } = pod.metadata
  if (labels?.[reservationLabel] !== job) return { type: 'foreign' }
  const scheduled = pod.status?.conditions?.find(({ type }) => type === 'PodScheduled')
  const node = pod.spec?.nodeName
  return {
    ...{ type: 'present', uid, resourceVersion, node },
    unschedulable:
      node === undefined && scheduled?.status === 'False'
        ? (scheduled.message ?? 'no node takes it')
        : undefined,
    isReady: isReady(pod) && deletionTimestamp === undefined,
    // The adoption takes the job from the owners. A pod that its ReplicaSet has released since is not the job's again.
    isAdopted: !ownerReferences.some(owner => owner.uid === job),
  }
}

/** The jobs that have ended are the history, so that it survives every restart. */
function historyOf(jobs: readonly KnownJob[]): History {
  const failures = new Map<string, number>()
  const descheduled = new Map<string, number>()
  const count = (counts: Map<string, number>, key: string | undefined) => {
    if (key !== undefined) counts.set(key, (counts.get(key) ?? 0) + 1)
  }
  for (const { job } of jobs) {
    const { phase, reason, source } = job.status ?? {}
    if (phase === 'Failed') count(failures, source?.uid)
    if (phase === 'Succeed' && reason !== 'DryRun') count(descheduled, source?.workload)
  }
  return { failures, descheduled }
}
