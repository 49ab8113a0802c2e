import { createPace, type Pace } from './pace.ts'

/**
 * The paces of slots, by `slotName`, for as long as there is the slot in this life: a checkpoint that fails begins its duty
 * again, and the time for which its primary has stood still counts all the same.
 */
export interface Paces {
  of(slot: string): Pace
  keepOnly(slots: ReadonlySet<string>): void
}

export function createPaces(): Paces {
  const paces = new Map<string, Pace>()
  return {
    of(slot) {
      const pace = paces.get(slot) ?? createPace()
      paces.set(slot, pace)
      return pace
    },
    keepOnly(keep) {
      for (const slot of [...paces.keys()]) if (!keep.has(slot)) paces.delete(slot)
    },
  }
}
