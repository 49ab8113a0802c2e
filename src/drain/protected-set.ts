import type { BackupPodSet } from '../api/backuppodset.ts'
import { type ParsedSet, parseSet } from '../api/parse.ts'
import type { Lease } from '../kube/resources.ts'
import type { Store } from '../kube/store.ts'
import { type SlotLeaseObject, slotLeasesOf } from '../slot/observe/slot-leases.ts'

/** A set whose primaries move when their node is drained. */
export interface ProtectedSet {
  readonly set: ParsedSet
  /** Its slots whose memory is saved, by their number. */
  readonly slots: ReadonlyMap<number, SlotLeaseObject['lease']>
}

/** Returns the set by its own spec, if its primaries are to move when their node is drained; undefined: they are not. */
export function movingSet(object: BackupPodSet): ParsedSet | undefined {
  const parsed = parseSet(object)
  const set = parsed.ok ? parsed.set : parsed.legible
  return set?.memory?.movesOnDrain === true ? set : undefined
}

/**
 * Returns the set with its slots; undefined if it does not move its primaries, or keeps no memory that could be lost: then an
 * eviction costs no more than a deletion, and nothing may make it wait.
 */
export function protectedSet(
  leases: Store<Lease>,
  object: BackupPodSet | undefined,
): ProtectedSet | undefined {
  if (object === undefined || object.metadata.deletionTimestamp !== undefined) return undefined
  const set = movingSet(object)
  if (set === undefined) return undefined
  const kept = slotLeasesOf(leases, set).filter(
    // Without permission, or with a claim in the way, the Lease stays and nothing is saved.
    ({ lease }) => lease.unsaved !== true && lease.retainedSince === undefined,
  )
  return kept.length === 0
    ? undefined
    : { set, slots: new Map(kept.map(({ lease }) => [lease.slot, lease] as const)) }
}
