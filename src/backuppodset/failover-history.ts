import { type BackupPodSetStatus, limits } from '../api/backuppodset.ts'
import type { LastFailover, SlotFailover } from '../api/slot-status.ts'
import { type Clock, elapses } from '../kube/clock.ts'
import type { WriteBehind } from '../state-store/write-behind.ts'

/**
 * The history of each set for display: failovers with the restored generation. It continues the previous operator's
 * history as far as the status or the state store still has it. Only one decision uses it: the delay before a slot
 * whose primaries keep failing gets another one.
 */
export interface FailoverHistory {
  /** Call before the first status is written. Reads the store once, in the background. */
  open(setUid: string, status: BackupPodSetStatus | undefined): void
  note(setUid: string, failovers: readonly LastFailover[]): void
  /** Newest first. */
  of(setUid: string): readonly LastFailover[]
  /** The set no longer exists. */
  forget(setUid: string): void
  /** A term begins or ends: drops all entries and cancels reads in progress. */
  clear(): void
}

const retryMs = 1_000
/** Entries kept for each set; the status shows the newest of them. */
const mostEntries = 100

export function createFailoverHistory(
  store: Pick<WriteBehind, 'store' | 'keep' | 'drop'>,
  { clock, changed }: { readonly clock: Clock; readonly changed: (setUid: string) => void },
): FailoverHistory {
  const sets = new Map<string, readonly LastFailover[]>()
  // Sets whose stored entries have been read; before that they must not be overwritten.
  const read = new Set<string>()
  const keyOf = (setUid: string) => `understudy:${setUid}:ledger`
  const add = (setUid: string, entries: readonly LastFailover[]): boolean => {
    const before = sets.get(setUid) ?? []
    const after = merged(before, entries)
    sets.set(setUid, after)
    return after.length !== before.length
  }
  const keep = (setUid: string) => {
    if (!read.has(setUid) || !sets.get(setUid)?.length) return
    store.keep(keyOf(setUid), () => {
      const entries = sets.get(setUid)
      return entries && Buffer.from(JSON.stringify(entries))
    })
  }
  let term = new AbortController()
  const load = async (setUid: string, { signal }: AbortController): Promise<void> => {
    while (sets.has(setUid) && !signal.aborted)
      try {
        const bytes = await store.store.get(keyOf(setUid))
        if (!sets.has(setUid) || signal.aborted) return
        read.add(setUid)
        if (add(setUid, parseEntries(bytes))) changed(setUid)
        keep(setUid)
        return
      } catch {
        // The store is down and reports that itself; no pass waits for this read.
        await elapses(clock, retryMs, signal)
      }
  }
  return {
    open(setUid, status) {
      if (sets.has(setUid)) return
      add(setUid, status?.failovers ?? (status?.lastFailover ? [status.lastFailover] : []))
      if (store.store.durable) void load(setUid, term)
    },
    note(setUid, failovers) {
      if (failovers.length === 0) return
      add(setUid, failovers)
      keep(setUid)
    },
    of: setUid => sets.get(setUid) ?? [],
    forget(setUid) {
      sets.delete(setUid)
      read.delete(setUid)
      store.drop(keyOf(setUid))
    },
    clear() {
      term.abort()
      term = new AbortController()
      sets.clear()
      read.clear()
    },
  }
}

function merged(a: readonly LastFailover[], b: readonly LastFailover[]): readonly LastFailover[] {
  const byIdentity = new Map([...a, ...b].map(entry => [`${entry.slot} ${entry.to} ${entry.at}`, entry]))
  return [...byIdentity.values()]
    .sort((x, y) => (x.at < y.at ? 1 : x.at > y.at ? -1 : x.slot - y.slot))
    .slice(0, mostEntries)
}

/** Parses stored entries. They may be of any age and shape: unreadable entries are left out. */
function parseEntries(bytes: Uint8Array | undefined): LastFailover[] {
  if (bytes === undefined) return []
  try {
    const value: unknown = JSON.parse(Buffer.from(bytes).toString())
    return Array.isArray(value) ? value.filter(isFailover) : []
  } catch {
    return []
  }
}

function isFailover(value: unknown): value is LastFailover {
  if (typeof value !== 'object' || value === null) return false
  const { slot, from, to, reason, seconds, at } = value as Record<string, unknown>
  return (
    Number.isSafeInteger(slot) &&
    [from, to, reason].every(text => typeof text === 'string') &&
    typeof seconds === 'number' &&
    typeof at === 'string' &&
    !Number.isNaN(Date.parse(at))
  )
}

/** The newest entries, as many as the status has room for. */
export const listed = (entries: readonly LastFailover[]): readonly LastFailover[] =>
  entries.slice(0, limits.failovers)

/** Returns the failover by which a slot's primary got the slot, if it did so by one. */
export function slotFailover(
  entries: readonly LastFailover[],
  slot: number,
  pod: string,
): SlotFailover | undefined {
  const entry = entries.find(each => each.slot === slot && each.to === pod)
  if (entry === undefined) return undefined
  const { from, to, reason, seconds, at, stateAge } = entry
  return { from, to, reason, seconds, at, ...(stateAge === undefined ? {} : { stateAge }) }
}
