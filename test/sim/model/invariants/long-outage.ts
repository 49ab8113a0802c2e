/** LongOutage: no app answers for a slot that has a backup. */
import { labels } from '../../../../src/api/labels.ts'
import type { NumberedSlotLease } from '../../../../src/api/numbered-slot.ts'
import { slotName } from '../../../../src/checkpoint/manifest.ts'
import { pods } from '../../../../src/kube/resources.ts'
import { stepsBehind } from '../../../../src/slot/decide/age.ts'
import type { ModelNode } from '../cluster.ts'
import type { Ground } from './ground.ts'
import type { ServedSlot } from './served-slots.ts'

export function longOutage(ground: Ground): (slots: readonly ServedSlot[], elapsed: number) => void {
  const { bounds, violate } = ground
  const outages = new Map<string, number>()
  return (slots, elapsed) => {
    for (const { name, set, lease, answer, works } of slots) {
      const isOut = works && answer === undefined && hasBackup(ground, lease)
      const ms = isOut ? (outages.get(name) ?? 0) + elapsed : 0
      outages.set(name, ms)
      const patienceMs = (set.spec.failover?.unreadySeconds ?? 0) * 1_000
      if (ms > bounds.outageMs + patienceMs)
        violate(
          'LongOutage',
          name,
          `nobody has answered for slot ${lease.slot} for ${ms} ms, and there is a backup`,
        )
    }
    for (const each of outages.keys()) if (!slots.some(({ name }) => name === each)) outages.delete(each)
  }
}

/** True if the slot has a hot backup on a working node, with memory of the slot, and no node has newer memory. */
export function hasBackup(
  { cluster, bounds, intervalMs, health, fates }: Ground,
  lease: NumberedSlotLease,
): boolean {
  const { time, server, nodes } = cluster
  const newestAt = (node: ModelNode | undefined) => {
    const newest = node?.volatile.shelf.get(slotName(lease))?.[0]?.manifest
    const { epoch = 0, generation = 0, takenAt = '' } = newest ?? {}
    return { epoch, generation, takenAt: Date.parse(takenAt) || 0 }
  }
  const all = nodes.filter(({ machine }) => machine.up).map(newestAt)
  return server.list(pods).some(({ metadata, spec }) => {
    const node = nodes.find(({ machine }) => machine.name === spec?.nodeName)
    const since = node && health.soundSince(node)
    return (
      metadata.labels?.[labels.type] === 'hotbackup' &&
      metadata.deletionTimestamp === undefined &&
      metadata.uid !== lease.holder.uid &&
      !fates.isBroken(metadata.uid) &&
      since !== undefined &&
      time.now() - since > bounds.soundMs &&
      (node?.volatile.shelf.get(slotName(lease))?.length ?? 0) > 0 &&
      all.every(other => stepsBehind(newestAt(node), other, intervalMs) === 0)
    )
  })
}
