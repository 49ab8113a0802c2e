/** NotSaved: a primary answers and is not saved on another node. */
import type { BackupPodSet } from '../../../../src/api/backuppodset.ts'
import { labels } from '../../../../src/api/labels.ts'
import type { NumberedSlotLease } from '../../../../src/api/numbered-slot.ts'
import { slotName } from '../../../../src/checkpoint/manifest.ts'
import { leases, type Pod, pods } from '../../../../src/kube/resources.ts'
import type { ModelNode } from '../cluster.ts'
import { type Answering, createUnsavedWatch, type Unsaved } from '../unsaved.ts'
import { answering } from '../world.ts'
import { type Ground, setOf } from './ground.ts'
import type { SavedGenesis } from './impostor-saved.ts'

export function notSaved(
  ground: Ground,
  saved: SavedGenesis,
  slack: number,
): {
  readonly look: () => void
  /** Returns primaries that should have been saved meanwhile. */
  readonly unsaved: () => readonly string[]
} {
  const { cluster, bounds, intervalMs, violate } = ground
  const { time, server } = cluster
  const watch = createUnsavedWatch(slack)
  let found: readonly Unsaved[] = []
  const nameOfPod = (uid: string) =>
    server.list(pods).find(({ metadata }) => metadata.uid === uid)?.metadata.name ?? uid
  const intervalOf = (set: BackupPodSet | undefined) =>
    1_000 * (Number.parseInt(set?.spec.checkpoint?.interval ?? '', 10) || intervalMs / 1_000)
  return {
    look() {
      const set = setOf(cluster)
      const isSavedAtAll = set?.spec.checkpoint !== undefined && set.spec.paused !== true
      found = watch.look(
        time.now(),
        intervalOf(set),
        isSavedAtAll ? answeringPrimaries(ground, saved, set) : [],
      )
      for (const { pod, ms, limitMs } of found)
        if (ms > limitMs)
          violate('NotSaved', pod, `${nameOfPod(pod)} answers and has not been saved for ${ms} ms`)
    },
    unsaved() {
      const enoughMs = 2 * intervalOf(setOf(cluster)) + bounds.fetchMs
      return found.flatMap(({ pod, ms }) => (ms > enoughMs ? [pod] : []))
    },
  }
}

/** Returns the primaries whose app answers, with what is saved of it on other machines. */
function answeringPrimaries(ground: Ground, saved: SavedGenesis, set: BackupPodSet): readonly Answering[] {
  const { cluster, leaseOf, health } = ground
  const { time, server, nodes } = cluster
  const machines = nodes.map(({ machine }) => machine)
  const slots = server.list(leases).flatMap(object => ({
    owner: object.metadata.ownerReferences?.[0]?.uid,
    lease: leaseOf(object),
  }))
  const quiet =
    time.now() >= cluster.collectsFrom && nodes.every(node => health.isAtWork(node) && isWhole(node.machine))
  return server.list(pods).flatMap((pod): Answering[] => {
    if (!isPrimaryOf(set, pod)) return []
    const { uid, labels: its = {} } = pod.metadata
    const node = nodes.find(({ machine }) => machine.name === pod.spec?.nodeName)
    const answer = answering(machines, pod.status?.podIP ?? '', time.now())
    if (node === undefined || answer?.pod.uid !== uid) return []
    const { genesis } = answer.app.memory
    const ofSlot = slots.filter(({ lease }) => String(lease?.slot) === its[labels.slot])
    // The Lease of a deleted set of this name is in the way.
    const isFree = ofSlot.every(({ owner }) => owner === set.metadata.uid)
    const lease = ofSlot[0]?.lease
    const works =
      isFree &&
      lease?.unsaved !== true &&
      !isWaitedFor(ground, lease, lease && saved.get(`${slotName(lease)} app`), genesis) &&
      canSave(ground, node)
    return [{ pod: uid, genesis, savedUntil: savedUntil(ground, node, lease, genesis), works, quiet }]
  })
}

const isPrimaryOf = (set: BackupPodSet, { metadata }: Pod): boolean =>
  metadata.labels?.[labels.type] === 'primary' &&
  metadata.deletionTimestamp === undefined &&
  metadata.ownerReferences?.[0]?.uid === set.metadata.uid

export const isWhole = ({
  slowStartMs,
  slowRestoreMs,
  slowAnswerMs,
  refusesStops,
  refusesRestores,
}: ModelNode['machine']): boolean =>
  slowStartMs + slowRestoreMs + slowAnswerMs === 0 && !refusesStops && !refusesRestores

/** The node, an operator, and a node that could keep a copy work. */
const canSave = ({ cluster, health }: Ground, node: ModelNode): boolean =>
  health.operatorsWorkSince() !== undefined &&
  health.isAtWork(node) &&
  isWhole(node.machine) &&
  cluster.nodes.some(other => other !== node && health.isAtWork(other))

/**
 * Another app runs in the primary, and a node that fails has the memory of the slot: there is no limit for that.
 * @param first the first app of which the slot has a generation.
 */
const isWaitedFor = (
  { cluster, health }: Ground,
  lease: NumberedSlotLease | undefined,
  first: string | undefined,
  genesis: string,
): boolean =>
  first !== undefined &&
  first !== genesis &&
  cluster.nodes.some(other => lease?.kept?.includes(other.machine.name) && !health.isAtWork(other))

/** Returns up to when the newest copy on another machine remembers this app; undefined if there is none. */
function savedUntil(
  { cluster }: Ground,
  node: ModelNode,
  lease: NumberedSlotLease | undefined,
  genesis: string,
): number | undefined {
  const copies = cluster.nodes
    .filter(({ machine }) => machine.up && machine !== node.machine)
    .flatMap(({ machine, volatile }) =>
      (lease ? (volatile.shelf.get(slotName(lease)) ?? []) : []).flatMap(
        ({ dir }) => machine.images.get(dir)?.get('app') ?? [],
      ),
    )
    .filter(memory => memory.genesis === genesis)
  return copies.length === 0 ? undefined : Math.max(...copies.map(({ until }) => until))
}
