/** MemoryThrownAway: the life of a slot ends although a machine has a copy. */
import { type NodeReport, nodeReports } from '../../../../src/api/node-report.ts'
import type { NumberedSlotLease } from '../../../../src/api/numbered-slot.ts'
import { kindLabelOf } from '../../../../src/api/pod-kind.ts'
import { slotName } from '../../../../src/checkpoint/manifest.ts'
import type { KubeObject } from '../../../../src/kube/object.ts'
import { leases, type Pod, pods, resourceName } from '../../../../src/kube/resources.ts'
import { isKept as isSaved } from '../../../../src/slot/decide/kept.ts'
import { servingOf } from '../../../../src/slot/observe/stage.ts'
import type { Cluster, ModelNode } from '../cluster.ts'
import { createToldCopies } from '../told-copies.ts'
import { type Ground, onLeases, setOf } from './ground.ts'

type Lives = Map<string, { readonly lease: NumberedSlotLease; readonly setUid: string }>

export function memoryThrownAway(ground: Ground): () => void {
  const { cluster, bounds, violate, leaseOf } = ground
  const { server } = cluster
  const lives: Lives = new Map()
  const untold = endingsUntold(ground, lives)
  const keepers = createKeepers(cluster, bounds.fetchMs)

  const begins = (key: string, lease: NumberedSlotLease, setUid: string) => {
    const before = lives.get(key)
    if (before === undefined || before.setUid !== setUid || before.lease.incarnation === lease.incarnation)
      return
    const kept = keepers.of(before.lease)
    if (kept.length > 0 && !untold.ended(before.lease.incarnation))
      violate(
        'MemoryThrownAway',
        `${key} ${before.lease.incarnation}`,
        `slot ${lease.slot} began a new life; ${kept.join(', ')} kept the old one`,
      )
  }
  return () => {
    keepers.look()
    const set = setOf(cluster)
    if (set === undefined) {
      lives.clear()
      return
    }
    const there = new Set<string>()
    for (const object of server.list(leases)) {
      const lease = leaseOf(object)
      const owner = object.metadata.ownerReferences?.[0]?.uid ?? ''
      // A deleted set has no guarantees.
      if (
        lease === undefined ||
        object.metadata.deletionTimestamp !== undefined ||
        owner !== set.metadata.uid
      )
        continue
      const key = lease.name
      there.add(key)
      begins(key, lease, owner)
      lives.set(key, { lease, setUid: owner })
    }
    // Slots that a smaller set gives up retain their memory longer than a round lasts, so their Leases must still
    // exist.
    for (const [key, { lease, setUid }] of lives) {
      if (there.has(key) || setUid !== set.metadata.uid) continue
      lives.delete(key)
      const kept = keepers.of(lease)
      if (kept.length > 0 && !untold.now(lease.incarnation))
        violate(
          'MemoryThrownAway',
          `${key} ${lease.incarnation}`,
          `slot ${lease.slot} was forgotten; ${kept.join(', ')} kept its memory`,
        )
    }
  }
}

interface Keepers {
  /** Notes which machines have a copy of which slot now. */
  readonly look: () => void
  /** Returns the machines that have had a copy for so long that the decision could know of it. */
  readonly of: (lease: NumberedSlotLease) => readonly string[]
}

/** A copy takes the place of another one every few seconds, so it counts since when a machine has had any. */
function createKeepers({ nodes, time }: Cluster, fetchMs: number): Keepers {
  const since = new WeakMap<ModelNode['volatile'], Map<string, number>>()
  const sinceOn = ({ volatile }: ModelNode) => {
    const found = since.get(volatile) ?? new Map<string, number>()
    since.set(volatile, found)
    return found
  }
  return {
    look() {
      for (const node of nodes) {
        const known = sinceOn(node)
        const there = [...node.volatile.shelf].flatMap(([name, list]) => (list.length > 0 ? [name] : []))
        for (const name of known.keys()) if (!there.includes(name)) known.delete(name)
        for (const name of there) if (!known.has(name)) known.set(name, time.now())
      }
    },
    of: lease =>
      nodes
        .filter(
          node =>
            node.machine.up && time.now() - (sinceOn(node).get(slotName(lease)) ?? time.now()) > fetchMs,
        )
        .map(({ machine }) => machine.name),
  }
}

/**
 * Returns whether a life ended, or ends now, before any report or Lease said that it has a copy, or after a Lease took that back before a
 * machine that it had named had one: the operator does not wait for a node that may have saved for the first time. A pod that was made for
 * the next life has decided that when it was made.
 */
function endingsUntold(
  ground: Ground,
  lives: Lives,
): { readonly ended: (life: string) => boolean; readonly now: (life: string) => boolean } {
  const { cluster, bounds } = ground
  const { time, server } = cluster
  const copies = createToldCopies()
  const endedUntold = new Set<string>()
  const madeAt = new Map<string, number>()
  const isUntold = (life: string, at: number) => {
    const told = copies.since(life)
    return told === undefined || at - told < bounds.wayMs
  }
  server.subscribe((resource, { type, object }) => {
    const isMade =
      type === 'ADDED' && resource === resourceName(pods) && kindLabelOf(object as Pod) === 'primary'
    if (isMade) madeAt.set(object.metadata.uid, time.now())
    for (const life of livesTold(resource, object, lives)) copies.tell(life, time.now())
  })
  onLeases(ground, ({ before, lease, isOfSet }) => {
    const having = cluster.nodes.flatMap(({ machine, volatile }) =>
      volatile.shelf.has(slotName(lease)) ? [machine.name] : [],
    )
    copies.write(lease.incarnation, time.now(), { names: lease.kept ?? [], having })
    if (!isOfSet || before === undefined || before.incarnation === lease.incarnation) return
    const isOther = lease.holder.uid !== before.holder.uid
    const decidedAt = (isOther ? madeAt.get(lease.holder.uid) : undefined) ?? time.now()
    if (isUntold(before.incarnation, decidedAt)) endedUntold.add(before.incarnation)
  })
  return { ended: life => endedUntold.has(life), now: life => isUntold(life, time.now()) }
}

/** Returns the lives of which a changed report or pod says that they have a copy. */
function livesTold(resource: string, object: KubeObject, lives: Lives): readonly string[] {
  if (resource === resourceName(nodeReports))
    return ((object as NodeReport).status?.slots ?? []).filter(isSaved).map(({ incarnation }) => incarnation)
  // The death of a terminating pod may come too late: the operator may already be creating its successor.
  const isDeath = resource === resourceName(pods) && servingOf(object as Pod).death !== undefined
  if (!isDeath || object.metadata.deletionTimestamp !== undefined) return []
  return [...lives.values()].flatMap(({ lease }) =>
    lease.holder.uid === object.metadata.uid ? [lease.incarnation] : [],
  )
}
