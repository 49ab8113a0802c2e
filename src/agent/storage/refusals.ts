/** Why the disk takes no newer generation of single slots, although it takes those of others. */
export interface Refusals {
  /** Undefined: it takes them again. */
  set(slot: string, reason: string | undefined): void
  of(slot: string): string | undefined
  /** Forgets those of all other slots. */
  keepOnly(slots: ReadonlySet<string>): void
  /** The different reasons. */
  readonly reasons: ReadonlySet<string>
}

/** @param changed called for every change. */
export function createRefusals(changed: () => void): Refusals {
  const refusals = new Map<string, string>()
  const set = (slot: string, reason: string | undefined) => {
    if (refusals.get(slot) === reason) return
    if (reason === undefined) refusals.delete(slot)
    else refusals.set(slot, reason)
    changed()
  }
  return {
    set,
    of: slot => refusals.get(slot),
    keepOnly(slots) {
      for (const slot of [...refusals.keys()]) if (!slots.has(slot)) set(slot, undefined)
    },
    get reasons() {
      return new Set(refusals.values())
    },
  }
}
