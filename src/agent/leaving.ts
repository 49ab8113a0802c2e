import type { SlotLease } from '../api/slot-lease.ts'
import { slotName } from '../checkpoint/manifest.ts'
import { isDead, isFor } from './observe/pod-facts.ts'
import type { PodView } from './observe/snapshot.ts'
import type { Fate } from './sentinel/unguard-all.ts'

/** Returns the fate of a guarded pod of a node that its agent leaves, and the Lease that names it. Pure. */
export function fateAtLeave(
  uid: string,
  pods: readonly PodView[],
  slots: readonly SlotLease[],
): { readonly fate: Fate; readonly lease?: SlotLease } {
  const pod = pods.find(each => each.uid === uid)
  if (pod === undefined) return { fate: 'Ends' }
  const lease = slots.find(({ holder }) => holder.uid === uid)
  if (isDead({ dead: new Map() }, pod, lease && slotName(lease))) return { fate: 'Ends' }
  if (lease !== undefined) return { fate: (lease.fence?.version ?? 0) > 0 ? 'Waits' : 'GoesOn', lease }
  const isAnothers = slots.some(each => isFor(each, pod) && each.name === pod.slot)
  return { fate: isAnothers || pod.kind === 'retired' ? 'Ends' : 'GoesOn' }
}
