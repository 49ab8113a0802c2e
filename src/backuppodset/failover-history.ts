import { type BackupPodSetStatus, limits } from '../api/backuppodset.ts'
import type { LastFailover, SlotFailover } from '../api/slot-status.ts'
import { type Clock, elapses } from '../kube/clock.ts'
import { perTerm, type Terms } from '../slot/act/term.ts'
import type { WriteBehind } from '../state-store/write-behind.ts'

/**
 * The history of one set for display: failovers with the restored generation. It continues the previous operator's
 * history as far as the status or the state store still has it. Only one decision uses it: the delay before a slot
 * whose primaries keep failing gets another one.
 */
export interface FailoverHistory {
  /** Call before the first status is written. Reads the store once a term, in the background. */
  open(status: BackupPodSetStatus | undefined): void
  note(failovers: readonly LastFailover[]): void
  /** Newest first. */
  of(): readonly LastFailover[]
}

export interface FailoverHistoryOptions {
  readonly store: Pick<WriteBehind, 'store' | 'keep' | 'drop'>
  readonly clock: Clock
  readonly terms: Pick<Terms, 'current'>
  /** Fires when the set is deleted: the store has no more use for its history. */
  readonly life: AbortSignal
  /** The store had more entries. */
  readonly changed: () => void
}

const retryMs = 1_000
/** Entries kept for each set; the status shows the newest of them. */
const mostEntries = 100

export function createFailoverHistory(
  setUid: string,
  { store, clock, terms, life, changed }: FailoverHistoryOptions,
): FailoverHistory {
  const key = `understudy:${setUid}:ledger`
  const ofTerm = perTerm(terms, ({ lasts }) => ({
    lasts,
    isOpen: false,
    /** The stored entries have been read; before that they must not be overwritten. */
    isRead: false,
    entries: [] as readonly LastFailover[],
  }))
  type State = ReturnType<typeof ofTerm>
  const isOver = ({ lasts }: State) => lasts.aborted || life.aborted
  const add = (state: State, entries: readonly LastFailover[]): boolean => {
    const before = state.entries
    state.entries = merged(before, entries)
    return state.entries.length !== before.length
  }
  const keep = (state: State) => {
    if (isOver(state) || !state.isRead || state.entries.length === 0) return
    store.keep(key, () => Buffer.from(JSON.stringify(state.entries)))
  }
  const load = async (state: State): Promise<void> => {
    while (!isOver(state))
      try {
        const bytes = await store.store.get(key)
        if (isOver(state)) return
        state.isRead = true
        if (add(state, parseEntries(bytes))) changed()
        keep(state)
        return
      } catch {
        // The store is down and reports that itself; no pass waits for this read.
        await elapses(clock, retryMs, state.lasts)
      }
  }
  life.addEventListener('abort', () => store.drop(key), { once: true })
  return {
    open(status) {
      const state = ofTerm()
      if (state.isOpen) return
      state.isOpen = true
      add(state, status?.failovers ?? (status?.lastFailover ? [status.lastFailover] : []))
      if (store.store.durable) void load(state)
    },
    note(failovers) {
      if (failovers.length === 0) return
      const state = ofTerm()
      add(state, failovers)
      keep(state)
    },
    of: () => ofTerm().entries,
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
