/** NotCalled: a restored app runs in a pod that is not its slot's primary at that moment. */
import { slotName } from '../../../../src/checkpoint/manifest.ts'
import { keyOf } from '../../../../src/kube/object.ts'
import type { Thawed } from '../cluster.ts'
import { type Ground, onLeases } from './ground.ts'

export function notCalled(ground: Ground): (thaw: Thawed) => void {
  const { cluster, bounds, violate } = ground
  /** The primaries of each slot and the time of their takeover, the newest first; by the name of the slot's Lease. */
  const holders = new Map<string, { readonly at: number; readonly uid: string; readonly epoch: number }[]>()
  onLeases(ground, ({ object, lease: { holder, epoch } }) => {
    const list = holders.get(keyOf(object)) ?? []
    holders.set(keyOf(object), list)
    if (list[0]?.uid !== holder.uid || list[0].epoch !== epoch)
      list.unshift({ at: cluster.time.now(), uid: holder.uid, epoch })
  })
  return ({ at, pod, slot, epoch }) => {
    const called = holders.get(keyOf({ metadata: slot })) ?? []
    const isCalled = called.some(
      (one, index) =>
        one.uid === pod.uid &&
        one.at <= at &&
        (called[index - 1]?.at ?? Number.POSITIVE_INFINITY) >= at - bounds.actMs,
    )
    if (!isCalled)
      violate(
        'NotCalled',
        `${slotName(slot)} ${pod.uid} ${epoch}`,
        `${pod.name} goes on stage, and the slot is another's`,
      )
  }
}
