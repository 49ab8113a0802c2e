import type { BackupPodSet } from '../../api/backuppodset.ts'
import type { Migration } from '../../api/migration.ts'
import type { MigrationControllerArgs } from '../../api/migration-controller-args.ts'
import { parseJob } from '../../api/parse-pod-migration-job.ts'
import { isFinishedJob } from '../../api/pod-migration-job.ts'
import type { Clock } from '../../kube/clock.ts'
import { keyOfRef } from '../../kube/object.ts'
import type { Store } from '../../kube/store.ts'
import type { Since } from '../../slot/observe/since.ts'
import { migrationNameOf } from '../decide/live.ts'
import type { ReservationView } from '../decide/reservation.ts'
import type { EvictionRequest, JobView, LiveFacts } from '../decide/view.ts'
import type { History, World } from '../decide/world.ts'
import { nodeRoomOf, type RoomOf } from './claims.ts'
import type { KnownJob, KnownReservation } from './known.ts'
import { disruptionBudgetsIn, podFacts, workloadFacts } from './pod-facts.ts'
import { relationsOf } from './preemptions.ts'
import { reservationFactsOf, reservationViewOf, usersOf } from './reservations.ts'
import type { WorldStores } from './world-caches.ts'

export interface ObserveDeps {
  readonly world: WorldStores
  readonly sets: Store<BackupPodSet>
  readonly migrations: Store<Migration>
  readonly since: Pick<Since, 'pass'>
  readonly clock: Pick<Clock, 'monotonic'>
  readonly requests: { of(uid: string): EvictionRequest }
  readonly roomOf: RoomOf
}

export interface Observed {
  readonly views: readonly JobView[]
  readonly reservations: readonly ReservationView[]
  readonly world: World
}

/** Returns all jobs that are not being deleted, and the world around them; it reads caches only. */
export function observe(
  jobs: readonly KnownJob[],
  reservations: readonly KnownReservation[],
  defaults: Pick<MigrationControllerArgs, 'defaultJobTtlMs' | 'defaultJobMode'>,
  deps: ObserveDeps,
): Observed {
  const stores = { ...deps.world, sets: deps.sets }
  const since = deps.since.pass()
  const heldForMs = (key: string) => deps.clock.monotonic() - (since(key, true) ?? deps.clock.monotonic())
  const reserved = reservations.map(known => reservationViewOf(known, deps.world.pods, heldForMs))
  // A tenant's pod with such a gate costs nothing.
  const isGated = reserved.some(({ pod }) => pod !== undefined && pod !== 'foreign' && pod.isGated)
  const pods = podFacts(stores, isGated ? deps.roomOf : undefined)
  const world: World = {
    pods,
    workloads: workloadFacts(pods, stores),
    disruptionBudgets: disruptionBudgetsIn(deps.world.disruptionBudgets.list()),
    nodes: new Map(deps.world.nodes.list().map(node => [node.metadata.name, nodeRoomOf(node)])),
    history: historyOf(jobs),
  }
  const present = jobs.filter(({ job }) => job.metadata.deletionTimestamp === undefined)
  const parsed = present.map(known => ({ known, parsed: parsedJob(known, defaults) }))
  const among = { reservations: new Map(reserved.map(view => [view.key, view])), users: usersOf(parsed) }
  const relations = relationsOf(parsed, among.reservations)
  const views = parsed.map(each => viewOf(each, world, { ...deps, ...among, relations }, heldForMs))
  return { views, reservations: reserved, world }
}

/** A job that runs keeps its mode when the configuration gets another default. */
const parsedJob = ({ resource, job }: KnownJob, defaults: Parameters<typeof parseJob>[1]) =>
  parseJob(job, { ...defaults, ...(job.status?.mode && { defaultJobMode: job.status.mode }) }, resource.group)

function viewOf(
  { known, parsed }: { readonly known: KnownJob; readonly parsed: JobView['parsed'] },
  world: World,
  deps: Pick<ObserveDeps, 'migrations' | 'requests'> &
    Parameters<typeof reservationFactsOf>[1] & { readonly relations: ReturnType<typeof relationsOf> },
  heldForMs: (key: string) => number,
): JobView {
  const { resource, job } = known
  const { name, uid, resourceVersion, generation = 0, creationTimestamp } = job.metadata
  const { status = {} } = job
  const wanted = parsed.ok ? parsed.job.pod : undefined
  const present = wanted && world.pods.get(keyOfRef(wanted))
  const expected = status.source?.uid ?? wanted?.uid
  const pod = present !== undefined && (expected ?? present.uid) === present.uid ? present : undefined
  const workload = pod?.owner.type === 'workload' ? world.workloads.get(pod.owner.key) : undefined
  const migration =
    parsed.ok && parsed.job.mode === 'Live'
      ? deps.migrations.get(keyOfRef({ namespace: parsed.job.pod.namespace, name: migrationNameOf({ uid }) }))
      : undefined
  return {
    ...{ resource, key: `${resource.group}/${name}`, name, uid, resourceVersion, generation },
    createdAt: Date.parse(creationTimestamp ?? '') || 0,
    ...{ parsed, status, pod, isRolling: workload?.isRolling === true },
    hasUnready: [...(workload?.unhealthy ?? [])].some(other => other !== pod?.uid),
    // No rule needs it for jobs that have ended.
    seenForMs: isFinishedJob(job) ? 0 : heldForMs(`${uid}/seen`),
    eviction: deps.requests.of(uid),
    live: liveFacts(migration, uid, () => heldForMs(`${uid}/absent`)),
    reservation: reservationFactsOf({ known, parsed }, deps, () => heldForMs(`${uid}/unreserved`)),
    ...deps.relations(job.metadata),
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
