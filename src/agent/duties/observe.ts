import { createAcceptedSpecs } from '../../api/accepted-spec.ts'
import type { BackupPodSet } from '../../api/backuppodset.ts'
import { labels } from '../../api/labels.ts'
import type { NodeReport } from '../../api/node-report.ts'
import type { ParsedSet } from '../../api/parse.ts'
import { parseSlotLease, restartsOf, type SlotLease } from '../../api/slot-lease.ts'
import { newestFirst, slotName } from '../../checkpoint/manifest.ts'
import { restoreHash } from '../../checkpoint/restore-hash.ts'
import type { GenerationStore, Stored } from '../../checkpoint/store.ts'
import { createMemo } from '../../kube/memo.ts'
import { keyOf } from '../../kube/object.ts'
import type { Lease, Pod } from '../../kube/resources.ts'
import type { Store } from '../../kube/store.ts'
import type { Machine } from '../../succession/machine-fit.ts'
import { memoryOf } from './freeze.ts'
import type { HandoverPauses } from './handover-pauses.ts'
import { viewOf } from './pod-view.ts'
import type { Kept, MemorySettings, Snapshot } from './snapshot.ts'
import type { Understudies } from './understudies.ts'

export interface World {
  readonly node: string
  /** Absent: memory is not compared with it. */
  readonly machine?: Machine
  readonly pods: Store<Pod>
  readonly sets: Store<BackupPodSet>
  readonly leases: Store<Lease>
  readonly reports: Store<NodeReport>
  readonly store: Pick<GenerationStore, 'list'>
  readonly understudies: Understudies
  readonly proven: ReadonlySet<string>
  readonly dead: ReadonlyMap<string, string>
  readonly handoverPauses: Pick<HandoverPauses, 'isOn'>
}

export type NodeState = Pick<Snapshot, 'able' | 'sentinel'>

/** Creates a reader of everything on which duties depend; it reads caches only. */
export function createObserver(world: World): (node: NodeState) => Snapshot {
  const specs = createAcceptedSpecs()
  // Once for each version: every change of any pod causes a complete read.
  const readOnce = createMemo((set: BackupPodSet) => specs.read(set))
  const settingsOf = createMemo(memorySettings)
  const slotLeaseOf = createMemo(parseSlotLease)
  const keptOf = createMemo(keptOfStored)
  const ownViewOf = createMemo((pod: Pod) => viewOf(pod, undefined))
  const viewsOf = createMemo((settings: MemorySettings) =>
    createMemo((pod: Pod) => viewOf(pod, settings.containers)),
  )
  return ({ able, sentinel }) => {
    const settings = new Map<string, MemorySettings>()
    const memoryless = new Set<string>()
    const sets = world.sets.list()
    for (const set of sets) {
      if (set.metadata.deletionTimestamp !== undefined) continue
      const { type, set: parsed } = readOnce(set)
      const read = parsed && settingsOf(parsed)
      if (read !== undefined) settings.set(keyOf(set), read)
      // `legible` means that no spec was accepted; its readable part does not prove that the set keeps no memory.
      else if (type !== 'legible') memoryless.add(keyOf(set))
    }
    specs.keepOnly(sets)
    const pods = world.pods.list().flatMap(pod => {
      const view = ownViewOf(pod)
      if (view === undefined) return []
      const ofSet = settings.get(view.set)
      return [ofSet === undefined ? view : (viewsOf(ofSet)(pod) ?? view)]
    })
    const reports = world.reports
      .list()
      .flatMap(({ metadata, status }) => (status === undefined ? [] : [[metadata.name, status] as const]))
    const slots: SlotLease[] = []
    const restarts = new Map<string, number>()
    for (const object of world.leases.list()) {
      const lease = isOfDeletedSet(object, world.sets) ? undefined : slotLeaseOf(object)
      if (lease === undefined) continue
      slots.push(lease)
      const count = restartsOf(object)
      if (count !== undefined) restarts.set(slotName(lease), count)
    }
    const paused = slots.filter(lease => world.handoverPauses.isOn(lease, pods))
    return {
      node: world.node,
      able,
      ...(world.machine === undefined ? {} : { machine: world.machine }),
      sentinel,
      pods,
      slots,
      restarts,
      settings,
      memoryless,
      reports: new Map(reports.filter(([node]) => node !== world.node)),
      kept: keptIn(world.store.list(), keptOf),
      stages: world.understudies.stages(pods),
      spoiled: world.understudies.spoiled(pods),
      proven: world.proven,
      dead: world.dead,
      handoversPaused: new Set(paused.map(slotName)),
    }
  }
}

/**
 * Whether the Lease belongs to a deleted set of the same name as a present one. The label names a set that exists, but
 * the owner is another one, because the garbage collector has not run yet. The new set must not get the old set's
 * memory.
 */
function isOfDeletedSet({ metadata }: Lease, sets: Store<BackupPodSet>): boolean {
  const { ownerReferences = [] } = metadata
  const set = sets.get(`${metadata.namespace}/${metadata.labels?.[labels.set]}`)
  return (
    set !== undefined &&
    ownerReferences.length > 0 &&
    ownerReferences.every(({ uid }) => uid !== set.metadata.uid)
  )
}

/** Returns the memory settings of a spec; undefined: the set keeps no memory. */
function memorySettings({ memory, liveness, paused, template }: ParsedSet): MemorySettings | undefined {
  if (memory === undefined) return undefined
  const hash = restoreHash(template, memory.containers)
  return { ...memory, liveness, template, paused, restoreHash: hash }
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
