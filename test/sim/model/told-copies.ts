/** Since when anything in the API has said that a life of a slot has a copy. */
export interface ToldCopies {
  /** A report, or the record of a death, says that the life has a copy. */
  tell(life: string, now: number): void
  /**
   * A Lease was written.
   *
   * @param names it names nodes that may have a copy of the life. Some are named as a precaution, since they may be
   * fetching one.
   * @param isThere a machine has a copy
   */
  write(life: string, now: number, given: { readonly names: boolean; readonly isThere: boolean }): void
  /** Undefined: nothing has said so, or only Leases, which took it back while no machine had a copy. */
  since(life: string): number | undefined
}

export function createToldCopies(): ToldCopies {
  const told = new Map<string, number>()
  const named = new Map<string, number>()
  const note = (first: Map<string, number>, life: string, now: number) => {
    if (!first.has(life)) first.set(life, now)
  }
  return {
    tell: (life, now) => note(told, life, now),
    write(life, now, { names, isThere }) {
      if (names) note(named, life, now)
      else if (!isThere) named.delete(life)
    },
    since(life) {
      const since = Math.min(told.get(life) ?? Infinity, named.get(life) ?? Infinity)
      return since === Infinity ? undefined : since
    },
  }
}
