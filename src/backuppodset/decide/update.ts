import { fitsMemory } from '../../succession/kinds.ts'
import type { MemoryView, SlotMemory } from '../memory/view.ts'
import type { PodView, Snapshot } from '../snapshot.ts'
import { isRetained } from './retention.ts'

/** How far a set is from its template, and what stands between. */
export interface Update {
  readonly outdated: readonly PodView[]
  /** Slots whose memory cannot go on in pods of the template as it is now. */
  readonly stranded: readonly SlotMemory[]
  /** Of these, memory that may be given up: the set says so. */
  readonly mayLose: boolean
  /** A roll is wanted, and memory that may not be lost is in its way. */
  readonly blocked: boolean
}

export interface Facts extends Pick<Snapshot, 'set' | 'pods' | 'templateHash'> {
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

/** It was said in an event that the memory of this slot will not go on, and that is still what is wished. */
export const isGivenUp = (s: Facts, { lease }: SlotMemory): boolean =>
  s.set.allowStateLoss && lease.givenUpFor === s.templateHash && !fitsMemory(s.restoreHash, lease.restoreHash)
