/** One way in which a slot could be served: by which pod, and how good that would be (lower is better). */
export interface Option {
  readonly uid: string
  readonly rank: number
}

/**
 * Gives each slot one pod and each pod to at most one slot. It serves as many slots as possible, earlier slots before
 * later ones, each with the best pod that this leaves for it. A slot that is missing in the result has no pod left.
 */
export function match(wishes: ReadonlyMap<number, readonly Option[]>): ReadonlyMap<number, string> {
  const givenTo = new Map<string, number>()
  const place = (slot: number, tried: Set<string>, highest: number): boolean => {
    const options = [...(wishes.get(slot) ?? [])].sort((a, b) => a.rank - b.rank || (a.uid < b.uid ? -1 : 1))
    for (const { uid, rank } of options) {
      if (tried.has(uid) || rank > highest) continue
      tried.add(uid)
      const other = givenTo.get(uid)
      // The other slot gives the pod up only for a pod within the rank of this round; worse ones are for later rounds.
      if (other === undefined || place(other, tried, highest)) {
        givenTo.set(uid, slot)
        return true
      }
    }
    return false
  }
  // Best pods first, over all slots: a slot must not take, as Staged, the pod that holds the frozen clone of another
  // slot.
  const ranks = [...new Set([...wishes.values()].flat().map(({ rank }) => rank))].sort((a, b) => a - b)
  const served = new Set<number>()
  for (const rank of ranks)
    for (const slot of wishes.keys()) if (!served.has(slot) && place(slot, new Set(), rank)) served.add(slot)
  return new Map([...givenTo].map(([uid, slot]) => [slot, uid]))
}
