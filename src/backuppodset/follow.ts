import type { BackupPodSet } from '../api/backuppodset.ts'
import type { Migration } from '../api/migration.ts'
import type { NodeReport } from '../api/node-report.ts'
import type { KubeObject } from '../kube/object.ts'
import type { Queue } from '../kube/queue.ts'
import type {
  ControllerRevision,
  EndpointSlice,
  Lease,
  Namespace,
  Node,
  Pod,
  Service,
} from '../kube/resources.ts'
import type { Change, Store } from '../kube/store.ts'
import type { Reports } from '../slot/observe/reports.ts'
import type { Storm } from '../slot/observe/storm.ts'
import type { Records } from './records.ts'
import type { SetRecord } from './set-record.ts'
import { setsOf, type Trigger, triggers } from './triggers.ts'
import type { UnlabelledPods } from './unlabelled-pods.ts'

export interface FollowedStores {
  readonly sets: Store<BackupPodSet>
  readonly pods: Store<Pod>
  readonly leases: Store<Lease>
  /** For their labels and taints. A change is seen in the next pass; only that a node goes out of service triggers one. */
  readonly nodes: Store<Node>
  readonly reports: Store<NodeReport>
  readonly services: Store<Service>
  readonly slices: Store<EndpointSlice>
  readonly revisions: Store<ControllerRevision>
  readonly migrations: Store<Migration>
  /** Namespaces in which the operator may keep memory. */
  readonly permitted: Store<Namespace> | 'everywhere'
}

export interface Followers {
  readonly records: Records<Pick<SetRecord, 'lostPrimaries'>>
  readonly unlabelledPods: Pick<UnlabelledPods, 'note'>
  readonly reports: Pick<Reports, 'note'>
  readonly storm: Pick<Storm, 'noteLease' | 'noteReport'>
  /** Memory of this process about pods, by uid. Each entry ends with its pod, after all others have seen that. */
  readonly ofPods: readonly { forget(uid: string): void }[]
}

/** Notes every change of an object, and then queues the sets that it concerns. */
export function follow(
  stores: FollowedStores,
  queue: Pick<Queue, 'add'>,
  { records, unlabelledPods, reports, storm, ofPods }: Followers,
): void {
  stores.pods.subscribe(change => {
    for (const key of setsOf(change)) records.at(key)?.lostPrimaries.note(change)
    unlabelledPods.note(change)
    if (change.type === 'deleted') for (const each of ofPods) each.forget(change.object.metadata.uid)
  })
  stores.leases.subscribe(storm.noteLease)
  stores.reports.subscribe(reports.note)
  stores.reports.subscribe(storm.noteReport)

  const trigger = <T extends KubeObject>(
    store: Store<T>,
    of: (change: Change<T>, sets: Store<BackupPodSet>) => readonly Trigger[],
  ) =>
    store.subscribe(change => {
      for (const each of of(change, stores.sets)) queue.add(...each)
    })
  const { sets, pods, leases, services, revisions, slices, permitted } = stores
  trigger(sets, triggers.set)
  trigger(pods, triggers.pod)
  for (const store of [leases, services, revisions, slices]) trigger<KubeObject>(store, triggers.labelled)
  if (permitted !== 'everywhere') trigger(permitted, triggers.permission)
  trigger(stores.reports, triggers.report)
  trigger(stores.nodes, triggers.node)
  trigger(stores.migrations, triggers.migration)
}
