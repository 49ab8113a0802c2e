import { fitsMemory } from '../../slot/decide/kinds.ts'
import type { MemoryView, SlotMemory } from '../../slot/decide/memory-view.ts'
import type { PodView, Snapshot } from '../snapshot.ts'
import { isRetained } from './retention.ts'

/** How far a set is from its template, and what blocks the roll. */
export interface Update {
  readonly outdated: readonly PodView[]
  /** Slots whose memory cannot be restored in pods of the template as it is now. */
  readonly stranded: readonly SlotMemory[]
  /** The set allows the loss of the memory of stranded slots. */
  readonly mayLose: boolean
  /** A roll is wanted, and memory that must not be lost blocks it. */
  readonly blocked: boolean
}

export interface Facts extends Pick<Snapshot, 'set' | 'pods' | 'templateHash' | 'moves'> {
  readonly restoreHash?: string | undefined
  readonly memory?: MemoryView | undefined
}

export function updateOf({ set, pods, templateHash, restoreHash, memory }: Facts): Update {
  const stranded = [...(memory?.slots.values() ?? [])].filter(
    slot => !isRetained(slot) && !fitsMemory(restoreHash, slot.lease.restoreHash),
  )
  const mayLose = set.allowStateLoss
  return {
    outdated: pods.filter(pod => pod.templateHash !== templateHash),
    stranded,
    mayLose,
    blocked: set.updateStrategy === 'RollingUpdate' && stranded.length > 0 && !mayLose,
  }
}

/** True if an event has announced that the memory of this slot is given up, and the set still asks for that. */
export const isGivenUp = (s: Facts, { lease }: SlotMemory): boolean =>
  s.set.allowStateLoss && lease.givenUpFor === s.templateHash && !fitsMemory(s.restoreHash, lease.restoreHash)
