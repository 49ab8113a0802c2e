import { createPace, type Pace } from './pace.ts'

/**
 * Paces by `slotName`, each for as long as its slot has the same life. A failed checkpoint restarts its task, but the
 * time for which it stopped the primary still counts.
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
