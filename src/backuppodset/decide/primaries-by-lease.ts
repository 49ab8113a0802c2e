import { isCloning } from '../../api/clone-of.ts'
import type { MemoryView } from '../../slot/decide/memory-view.ts'
import type { PodView, Snapshot } from '../snapshot.ts'
import { partition } from './partition.ts'
import { type PrimarySets, partitionPrimaries } from './primary-sets.ts'
import { isGivenUp } from './update.ts'

/** Like `partitionPrimaries`, except that the Lease, and not a label, decides which primaries have been succeeded. */
export function primariesByLease(
  s: Snapshot,
  { slots }: MemoryView,
  untimely: readonly PodView[],
): PrimarySets {
  const isSucceeded = (pod: PodView) => {
    const lease = slots.get(pod.slot ?? -1)?.lease
    if (lease === undefined || lease.holder.uid === pod.uid) return false
    // Such a slot has no primary yet, whatever a pod says.
    return isCloning(lease) || pod.epoch < lease.epoch
  }
  const [succeeded, others] = partition(
    s.pods.filter(pod => pod.kind === 'primary' && !untimely.includes(pod)),
    isSucceeded,
  )
  const cast = partitionPrimaries(others)
  return { ...cast, superseded: [...cast.superseded, ...succeeded] }
}

/**
 * Returns pods that were to begin a new incarnation of their slot beside its present primary, and will not: the roll that made
 * them has been taken back since, or they have died. The present primary stays.
 */
export function untimelySuccessors(s: Snapshot, { slots }: MemoryView): readonly PodView[] {
  return s.pods.filter(pod => {
    const slot = slots.get(pod.slot ?? -1)
    if (pod.kind !== 'primary' || slot === undefined || pod.epoch <= slot.lease.epoch) return false
    const holder = s.pods.find(({ uid }) => uid === slot.lease.holder.uid)
    const isOnStage = holder?.kind === 'primary' && holder.ready && holder.stage?.died !== true
    return isOnStage && (pod.stage?.died === true || !isGivenUp(s, slot))
  })
}
