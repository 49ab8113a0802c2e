/** Since when anything in the API has said that a life of a slot has a copy. */
export interface ToldCopies {
  /** A report, or the record of a death, says that the life has a copy. */
  tell(life: string, now: number): void
  /**
   * A Lease was written.
   *
   * @param names nodes that may have a copy of the life. Some are named as a precaution, since they may be fetching one.
   * @param having machines that have a copy
   */
  write(
    life: string,
    now: number,
    given: { readonly names: readonly string[]; readonly having: readonly string[] },
  ): void
  /** Undefined: nothing has said so, or only Leases, which took it back while no machine that they had named had a copy. */
  since(life: string): number | undefined
}

export function createToldCopies(): ToldCopies {
  const told = new Map<string, number>()
  const named = new Map<string, { readonly since: number; readonly nodes: ReadonlySet<string> }>()
  return {
    tell(life, now) {
      if (!told.has(life)) told.set(life, now)
    },
    write(life, now, { names, having }) {
      const { since = now, nodes = new Set<string>() } = named.get(life) ?? {}
      if (names.length > 0) named.set(life, { since, nodes: nodes.union(new Set(names)) })
      else if (!having.some(node => nodes.has(node))) named.delete(life)
    },
    since(life) {
      const since = Math.min(told.get(life) ?? Infinity, named.get(life)?.since ?? Infinity)
      return since === Infinity ? undefined : since
    },
  }
}
