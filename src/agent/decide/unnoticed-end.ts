import { slotName } from '../../checkpoint/manifest.ts'
import type { PodView, Snapshot } from '../observe/snapshot.ts'
import { anotherIn } from './slot-facts.ts'

/** The end of a container's app that no sentinel has reported. */
export interface UnnoticedEnd {
  readonly container: string
  /** Clause about the container, for the pod's condition. */
  readonly what: string
}

/**
 * Returns the end of a primary that shows only by what runs in its place; undefined: there is none. Pure.
 *
 * @param isKnown the pod is watched, or its end has been declared.
 */
export function unnoticedEndOf(snapshot: Snapshot, pod: PodView, isKnown: boolean): UnnoticedEnd | undefined {
  if (pod.understudy) return undefined
  const lease = snapshot.slots.find(({ holder }) => holder.uid === pod.uid)
  const other = lease && anotherIn(snapshot, lease, pod)
  if (other !== undefined)
    return { container: other.name, what: 'has ended; another container runs in its place' }
  // Times have whole seconds, so they count only if the Lease does not name the containers of the memory.
  if (isKnown || lease === undefined || lease.containers !== undefined) return undefined
  // No sentinel watched the pod, not even an earlier one. Its newest generation tells which run of the container it
  // is from.
  const kept = snapshot.kept.get(slotName(lease))
  const restarted = pod.containers.find(({ startedAt = 0 }) => kept !== undefined && startedAt > kept.takenAt)
  if (kept?.podUid !== pod.uid || restarted === undefined) return undefined
  return { container: restarted.name, what: 'restarted while no sentinel watched it' }
}
