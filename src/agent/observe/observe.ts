import { type GrantWord, grantsOver } from '../../api/grant.ts'
import type { NodeReport } from '../../api/node-report.ts'
import { parseSlotLease, restartsOf, type SlotLease } from '../../api/slot-lease.ts'
import type { SlotPolicy } from '../../api/slot-policy.ts'
import { newestFirst, slotName } from '../../checkpoint/manifest.ts'
import type { GenerationStore, Stored } from '../../checkpoint/store.ts'
import { createMemo } from '../../kube/memo.ts'
import type { Lease, Pod } from '../../kube/resources.ts'
import type { Store } from '../../kube/store.ts'
import type { Machine } from '../../slot/decide/machine-fit.ts'
import { effectiveLease } from './effective-lease.ts'
import { memoryOf } from './generations.ts'
import { grantWordOf } from './grant-word.ts'
import { isMarked, viewOf } from './pod-view.ts'
import type { FenceView, GrantsView, Kept, PodView, Snapshot, StageView } from './snapshot.ts'

export interface World {
  readonly node: string
  /** Absent: memory is not compared with it. */
  readonly machine?: Machine
  readonly pods: Store<Pod>
  readonly leases: Store<Lease>
  readonly reports: Store<NodeReport>
  readonly store: Pick<GenerationStore, 'list'>
  readonly understudies: {
    /** By uid, for pods whose containers have not changed since. */
    stages(pods: readonly PodView[]): ReadonlyMap<string, StageView>
    /** Uids of understudies in which nothing can be restored any more. */
    spoiled(pods: readonly PodView[]): ReadonlySet<string>
  }
  /** The state of the node at each pass. */
  readonly state: NodeState
  readonly proven: ReadonlySet<string>
  readonly dead: ReadonlyMap<string, string>
  readonly handoverPauses: {
    /** Whether the slot's primary, one of these pods, must not be stopped for a successor now. */
    isOn(lease: SlotLease, pods: readonly PodView[]): boolean
  }
  readonly fence: FenceView
  readonly grants: GrantsView
}

export type NodeState = Pick<Snapshot, 'able' | 'sentinel'>

/** Returns the policies by the uid of the pod that holds the slot. */
export const policiesOf = (slots: readonly SlotLease[]): ReadonlyMap<string, SlotPolicy | undefined> =>
  new Map(slots.map(({ holder, policy }) => [holder.uid, policy]))

/**
 * Returns the Lease and the records as if they knew of the grants that the operator has ended on pods of this node: those are never
 * used, and the pod may be called to another slot.
 */
function endedGrants(
  lease: SlotLease,
  { pods, grants }: Pick<World, 'pods' | 'grants'>,
): GrantsView & { readonly lease: SlotLease } {
  const { grant, incarnation } = lease
  const over = (uid: string | undefined) =>
    grantsOver(pods.list().find(({ metadata }) => metadata.uid === uid)?.metadata.annotations, incarnation)
  const record = grants.records.get(slotName(lease))
  const isRecordOver = record?.isAnnounced === true && over(record.heir.uid) >= record.number
  const isOver = grant?.isAnnounced === true && !grant.isRevoked && over(grant.heir?.uid) >= grant.number
  return {
    lease: isOver ? { ...lease, grant: { ...grant, isRevoked: true } } : lease,
    records: isRecordOver ? new Map() : grants.records,
    alive: grants.alive,
  }
}

/** Creates a reader of everything on which tasks depend; it reads caches only. */
export function createObserver(world: World): () => Snapshot {
  // Once for each version: every change of any pod causes a complete read.
  const slotLeaseOf = createMemo(parseSlotLease)
  const keptOf = createMemo(keptOfStored)
  const ownViewOf = createMemo((pod: Pod) => viewOf(pod, undefined))
  const viewsOf = createMemo((policy: SlotPolicy) => createMemo((pod: Pod) => viewOf(pod, policy)))
  return () => {
    const { able, sentinel } = world.state
    const reports = world.reports
      .list()
      .flatMap(({ metadata, status }) => (status === undefined ? [] : [[metadata.name, status] as const]))
    const slots: SlotLease[] = []
    const restarts = new Map<string, number>()
    const epochs = new Map<string, number>()
    const grantWords = new Map<string, GrantWord>()
    for (const object of world.leases.list()) {
      const lease = slotLeaseOf(object)
      if (lease === undefined) continue
      const name = slotName(lease)
      const grants = endedGrants(lease, world)
      slots.push(effectiveLease(grants.lease, grants.records.get(name)))
      epochs.set(name, lease.epoch)
      const word = grantWordOf(world.node, grants.lease, grants)
      if (word !== undefined) grantWords.set(name, word)
      const count = restartsOf(object)
      if (count !== undefined) restarts.set(name, count)
    }
    const policies = policiesOf(slots)
    const pods = world.pods.list().flatMap(pod => {
      const policy = isMarked(pod) ? undefined : policies.get(pod.metadata.uid)
      return (policy === undefined ? ownViewOf(pod) : viewsOf(policy)(pod)) ?? []
    })
    const paused = slots.filter(lease => world.handoverPauses.isOn(lease, pods))
    return {
      node: world.node,
      able,
      ...(world.machine === undefined ? {} : { machine: world.machine }),
      sentinel,
      pods,
      ...{ slots, epochs, grantWords },
      restarts,
      reports: new Map(reports.filter(([node]) => node !== world.node)),
      kept: keptIn(world.store.list(), keptOf),
      stages: world.understudies.stages(pods),
      spoiled: world.understudies.spoiled(pods),
      proven: world.proven,
      dead: world.dead,
      handoversPaused: new Set(paused.map(slotName)),
      fence: world.fence,
      grants: world.grants,
    }
  }
}

function keptIn(stored: readonly Stored[], keptOf: (stored: Stored) => Kept): Map<string, Kept> {
  const kept = new Map<string, Kept>()
  for (const each of [...stored].sort((a, b) => newestFirst(a.manifest, b.manifest))) {
    const name = slotName(each.manifest.slot)
    if (!kept.has(name)) kept.set(name, keptOf(each))
  }
  return kept
}

function keptOfStored(stored: Stored): Kept {
  const { epoch, generation, restoreHash, source, takenAt, containers, final = false } = stored.manifest
  return {
    epoch,
    generation,
    restoreHash,
    final,
    podUid: source.podUid,
    takenAt: Date.parse(takenAt),
    memory: memoryOf(stored),
    machine: stored.manifest,
    imageIds: new Map(containers.map(({ name, imageId }) => [name, imageId])),
  }
}
