import type { Role } from '../../slot/decide/actions.ts'
import { type LostPrimary, lastEpoch } from '../../slot/decide/snapshot.ts'
import type { PodView, Snapshot } from '../snapshot.ts'

/** Primaries, sorted into current and superseded ones. */
export interface PrimarySets {
  /** One primary per slot, plus primaries that still need a slot. */
  readonly primaries: readonly PodView[]
  /** Primaries without a slot of their own: they have none, or another pod of the same epoch holds it. */
  readonly slotless: readonly PodView[]
  /**
   * Another pod has their slot with a later epoch: they are never readmitted, and deleted once the successor serves.
   */
  readonly superseded: readonly PodView[]
}

/** Splits primaries by slot: the highest epoch of a slot is its primary. */
export function partitionPrimaries(primaries: readonly PodView[]): PrimarySets {
  const bySlot = Map.groupBy(
    primaries.filter(pod => pod.slot !== undefined),
    pod => pod.slot,
  )
  const slotless = primaries.filter(pod => pod.slot === undefined)
  const superseded: PodView[] = []
  const holders: PodView[] = []
  for (const pods of bySlot.values()) {
    const [holder, ...others] = pods.sort(
      (a, b) =>
        b.epoch - a.epoch ||
        Number(b.ready) - Number(a.ready) ||
        a.createdAt - b.createdAt ||
        (a.name < b.name ? -1 : 1),
    )
    if (holder === undefined) continue
    holders.push(holder)
    for (const other of others) (other.epoch < holder.epoch ? superseded : slotless).push(other)
  }
  return { primaries: [...holders, ...slotless], slotless, superseded }
}

/**
 * Returns a function that hands out roles: the lowest slot not in `taken` first (gaps are allowed, a number is an
 * identity), each with an epoch above every epoch that its slot has seen.
 */
export function roleGiver(s: Snapshot, taken: Iterable<number>, failing: readonly LostPrimary[]): () => Role {
  const used = new Set(taken)
  const failed = new Map(failing.map(lost => [lost.slot, lost]))
  let slot = -1
  return () => {
    do slot += 1
    while (used.has(slot))
    return roleIn(s, slot, failed.get(slot) ?? s.lost.get(slot))
  }
}

/**
 * Returns a role with the next epoch of one slot. Only a forged annotation lets the epoch reach its maximum; `partitionPrimaries`
 * then tells equal epochs apart by readiness.
 */
export const roleIn = (s: Snapshot, slot: number, replaces: LostPrimary | undefined): Role => ({
  slot,
  epoch: Math.min(lastEpoch, (s.epochs.get(slot) ?? 0) + 1),
  replaces,
})
