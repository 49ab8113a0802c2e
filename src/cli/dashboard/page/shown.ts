/** The state of the page, and how messages change it. No part of it needs a browser. */
import type { Happening, Head, Message, SetChange, SetPicture } from '../wire.ts'

export interface Shown {
  /** Undefined: no message has come yet. */
  readonly head: Head | undefined
  /** By key, in the order of the keys. */
  readonly sets: ReadonlyMap<string, SetPicture>
  /** Clock of the browser when the last message came, ms. */
  readonly heardAt: number
  /** How far the program's clock is ahead of the browser's, ms. */
  readonly ahead: number
  /** News for those who do not see the page, since the last message. */
  readonly news: readonly string[]
}

export const nothingShown: Shown = { head: undefined, sets: new Map(), heardAt: 0, ahead: 0, news: [] }

/** @param now clock of the browser, ms */
export function received(shown: Shown, { head, whole, sets, gone }: Message, now: number): Shown {
  const before = whole ? nothingShown.sets : shown.sets
  const changed = sets.flatMap(change => changedBy(change, before.get(change.key)) ?? [])
  const next = new Map(before)
  for (const key of gone) next.delete(key)
  for (const set of changed) next.set(set.key, set)
  const hasOthers = changed.some(({ key }) => !before.has(key))
  return {
    head,
    sets: hasOthers ? sorted(next) : next,
    heardAt: now,
    ahead: head.now - now,
    news: shown.head === undefined ? [] : changed.flatMap(set => newsOf(shown.sets.get(set.key), set)),
  }
}

/** Slots that have not changed stay the same objects, so that the page can leave their rows alone. */
function changedBy(
  { key, facts, slots, goneSlots }: SetChange,
  before: SetPicture | undefined,
): SetPicture | undefined {
  const known = facts ?? before
  // The program sends the facts of a set before it sends changes of it.
  if (known === undefined) return undefined
  const byNumber = new Map((before?.slots ?? []).map(slot => [slot.slot, slot]))
  for (const number of goneSlots) byNumber.delete(number)
  for (const slot of slots) byNumber.set(slot.slot, slot)
  return { ...known, key, slots: [...byNumber.values()].sort((a, b) => a.slot - b.slot) }
}

const sorted = (sets: ReadonlyMap<string, SetPicture>): ReadonlyMap<string, SetPicture> =>
  new Map([...sets].sort(([a], [b]) => (a < b ? -1 : 1)))

function newsOf(before: SetPicture | undefined, { key, timeline }: SetPicture): readonly string[] {
  if (before === undefined || before.timeline === timeline) return []
  const known = new Map(before.timeline.map(({ id, outcome }) => [id, outcome]))
  return timeline
    .filter(({ id, outcome }) => known.get(id) !== outcome)
    .map(each => `${key}: ${happeningText(each)}`)
}

/** Says what happened, without its time. */
export function happeningText({ type, slot, from, to, outcome }: Happening): string {
  const where = slot === undefined ? '' : `slot ${slot}, `
  const what = type === 'failover' ? 'failover' : outcome === 'done' ? 'move' : `move ${outcome}`
  return `${what}, ${where}${from} → ${to}`
}

export type Presence =
  | { readonly type: 'present' }
  /** No message has come yet. */
  | { readonly type: 'waiting' }
  /** The API server does not answer the program. */
  | { readonly type: 'lost'; readonly since: number; readonly why: string }
  /** The program does not answer the page. */
  | { readonly type: 'ended'; readonly since: number }
  /** The page was opened without the key of this run. */
  | { readonly type: 'refused'; readonly why: string }

/** The program sends something every three seconds. */
export const silentMs = 8_000

export type Connection =
  | { readonly type: 'open' }
  | { readonly type: 'lost' }
  | { readonly type: 'refused'; readonly why: string }

/** Says whether the page shows the present. `since` is on the program's clock. @param now clock of the browser, ms */
export function presenceOf({ head, heardAt, ahead }: Shown, connection: Connection, now: number): Presence {
  const isHeard = connection.type === 'open' && now - heardAt <= silentMs
  if (head === undefined) {
    if (connection.type === 'refused') return connection
    return isHeard ? { type: 'waiting' } : { type: 'ended', since: now }
  }
  if (!isHeard) return { type: 'ended', since: head.lost?.since ?? heardAt + ahead }
  if (head.lost !== undefined) return { type: 'lost', ...head.lost }
  return head.isFilled ? { type: 'present' } : { type: 'waiting' }
}

export interface Filter {
  readonly words: string
  readonly onlyTroubled: boolean
}

const isTroubled = ({ ready, troubles, slots }: SetPicture): boolean =>
  !ready || troubles.length > 0 || slots.some(slot => !slot.ready || slot.protection === 'None')

/** Returns the sets that the user wants to see: each word is a part of a name of the set, or of a pod or node of its slots. */
export function chosen(sets: ReadonlyMap<string, SetPicture>, { words, onlyTroubled }: Filter): SetPicture[] {
  const wanted = words
    .toLowerCase()
    .split(/\s+/)
    .filter(word => word !== '')
  return [...sets.values()].filter(set => {
    if (onlyTroubled && !isTroubled(set)) return false
    if (wanted.length === 0) return true
    const names = [set.key, ...set.slots.flatMap(({ pod, node = '' }) => [pod, node])]
    return wanted.every(word => names.some(name => name.toLowerCase().includes(word)))
  })
}

/** The newest failovers and moves of all sets. */
export function newest(sets: readonly SetPicture[], most: number): (Happening & { readonly set: string })[] {
  return sets
    .flatMap(({ key, timeline }) => timeline.map(each => ({ ...each, set: key })))
    .sort((a, b) => b.at - a.at)
    .slice(0, most)
}
