import type { LastFailover } from '../../api/slot-status.ts'
import { newestOf, takenAt } from '../../slot/decide/copy-age.ts'
import type { LossReason } from '../../slot/decide/snapshot.ts'
import type { Snapshot } from '../snapshot.ts'

/** A slot whose primaries fail one after the other, each soon after its takeover. */
export interface Pause {
  readonly slot: number
  /** Takeovers in a row. */
  readonly times: number
  readonly reason: string
  /** Wall clock, ms: when the last takeover happened (`at`), and when the next one is allowed (`until`). */
  readonly at: number
  readonly until: number
}

/** The number of takeovers in a row that no pause delays. */
const free = 3
const firstMs = 10_000
const mostMs = 600_000
/** A primary that fails later than this after its takeover did not fail because of it, ms. */
const windowMs = 2 * mostMs

/**
 * Returns the slots in which failing primaries are replaced with pauses, each twice as long as the one before. Without
 * pauses, an app or a memory that kills each pod that gets it would use up one pod after the other, for ever.
 * @param failovers newest first, as the status keeps them: they outlive the operator.
 */
export function pausesOf(failovers: readonly LastFailover[], now: number): readonly Pause[] {
  const bySlot = Map.groupBy(
    failovers.filter(({ at }) => Date.parse(at) <= now),
    ({ slot }) => slot,
  )
  return [...bySlot].flatMap(([slot, entries]): Pause[] => {
    const times = timesInARow(entries)
    const [last] = entries
    if (last === undefined || times < free) return []
    const at = Date.parse(last.at)
    const until = at + Math.min(mostMs, firstMs * 2 ** (times - free))
    return until <= now ? [] : [{ slot, times, reason: last.reason, at, until }]
  })
}

function timesInARow(entries: readonly LastFailover[]): number {
  let times = 0
  for (const [index, entry] of entries.entries()) {
    if (!isFailure(entry.reason)) break
    times += 1
    const before = entries[index + 1]
    if (before === undefined || before.to !== entry.from || !isRepeated(entry, before)) break
  }
  return times
}

const isFailure = (reason: string): boolean => ['CrashLoop', 'Unready', 'Died', 'Ended'].includes(reason)

/** With memory: true if no generation was saved between the two, so that the same memory was restored once more. */
function isRepeated({ at, seconds, stateAge }: LastFailover, before: LastFailover): boolean {
  const since = Date.parse(at) - Date.parse(before.at)
  return stateAge === undefined ? since <= windowMs : since <= (seconds + stateAge) * 1000
}

/** Returns the ms for which a primary that has failed for this reason is not replaced yet. */
export function msUntilReplaced(s: Snapshot, slot: number | undefined, reason: LossReason): number {
  const pause = pausesOf(s.failovers ?? [], s.now).find(each => each.slot === slot)
  if (pause === undefined) return 0
  const memory = s.memory?.slots.get(pause.slot)
  const [newest] = [...(memory?.copies ?? [])].sort(newestOf({ epoch: memory?.lease.epoch ?? 0 }))
  const isAnother =
    (reason === 'Died' || reason === 'Ended') &&
    newest !== undefined &&
    s.now - (s.monotonicNow - takenAt(newest, s)) > pause.at
  return isAnother ? 0 : pause.until - s.now
}

/** Returns the ms until the next pause ends; undefined if there is no pause. */
export function untilPauseEnds(s: Snapshot): number | undefined {
  const left = pausesOf(s.failovers ?? [], s.now).map(({ until }) => until - s.now)
  return left.length === 0 ? undefined : Math.min(...left)
}
