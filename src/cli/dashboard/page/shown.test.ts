import { expect, test } from 'vitest'
import type { Happening, Head, Message, SetChange, SetPicture } from '../wire.ts'
import { chosen, nothingShown, presenceOf, received } from './shown.ts'

const head: Head = { server: 's', version: 'v', now: 1_000_500, isFilled: true, missing: [] }
const now = 1_000_000
const failover: Happening = {
  ...{
    id: 'f',
    type: 'failover',
    slot: 0,
    from: 'a',
    to: 'b',
    at: 1,
    outcome: 'done',
    why: 'Died',
    phases: [],
  },
}
const counts = { wanted: 1, inPlace: 1 }
const picture = (name: string, more: Partial<SetPicture> = {}): SetPicture => ({
  ...{ key: `shop/${name}`, namespace: 'shop', name, ready: true, drill: false },
  ...{ primaries: counts, hotBackups: counts, coldBackups: counts, slots: [], troubles: [], timeline: [] },
  ...more,
})
const changeOf = ({ slots, ...facts }: SetPicture): SetChange => ({
  key: facts.key,
  facts,
  slots,
  goneSlots: [],
})
const message = (sets: readonly SetPicture[], more: Partial<Message> = {}): Message => ({
  ...{ head, whole: false, sets: sets.map(changeOf), gone: [] },
  ...more,
})
const first = received(nothingShown, message([picture('b'), picture('a')], { whole: true }), now)

test('sets are in the order of their names, changed ones replaced, and gone ones left out', () => {
  expect([...first.sets.keys()]).toEqual(['shop/a', 'shop/b'])
  const second = received(first, message([picture('b', { ready: false })], { gone: ['shop/a'] }), now)
  expect([...second.sets.values()]).toMatchObject([{ name: 'b', ready: false }])
  expect([...received(second, message([picture('c')], { whole: true }), now).sets.keys()]).toEqual(['shop/c'])
})

test('news are what has happened since, and not what was there before', () => {
  expect(first.news).toEqual([])
  const second = received(first, message([picture('a', { timeline: [failover] })]), now)
  expect(second.news).toEqual(['shop/a: failover, slot 0, a → b'])
  expect(received(second, message([picture('a', { timeline: [failover] })]), now).news).toEqual([])
})

test('a move that ends is news again', () => {
  const move: Happening = { ...failover, id: 'm', type: 'move', outcome: 'under way' }
  const running = received(first, message([picture('a', { timeline: [move] })]), now)
  const over = received(running, message([picture('a', { timeline: [{ ...move, outcome: 'done' }] })]), now)
  expect([running.news, over.news]).toEqual([
    ['shop/a: move under way, slot 0, a → b'],
    ['shop/a: move, slot 0, a → b'],
  ])
})

test('the page shows the present only while program and API server answer', () => {
  expect(presenceOf(nothingShown, { type: 'open' }, 0)).toEqual({ type: 'waiting' })
  expect(presenceOf(first, { type: 'open' }, now + 1_000)).toEqual({ type: 'present' })
  expect(presenceOf(first, { type: 'lost' }, now + 1_000)).toEqual({ type: 'ended', since: 1_000_500 })
  expect(presenceOf(first, { type: 'open' }, now + 60_000)).toEqual({ type: 'ended', since: 1_000_500 })
  const lost = received(first, message([], { head: { ...head, lost: { since: 5, why: 'away' } } }), now)
  expect(presenceOf(lost, { type: 'open' }, now)).toEqual({ type: 'lost', since: 5, why: 'away' })
  // Facts that were old before the program ended are not newer because of that.
  expect(presenceOf(lost, { type: 'lost' }, now)).toEqual({ type: 'ended', since: 5 })
})

test('a page without the key of this run says why, and one whose program was started again shows the past', () => {
  const refused = { type: 'refused', why: 'lacks its key' } as const
  expect(presenceOf(nothingShown, refused, 0)).toEqual(refused)
  expect(presenceOf(first, refused, now + 1_000)).toEqual({ type: 'ended', since: 1_000_500 })
})

test('a change of one slot leaves the others as they are', () => {
  const slot = (number: number, ready = true) => ({
    ...{ slot: number, pod: `x-${number}`, ready, epoch: 1, followers: [] },
  })
  const before = received(first, message([picture('a', { slots: [slot(1), slot(0), slot(2)] })]), now)
  const change = { key: 'shop/a', slots: [slot(1, false)], goneSlots: [2] }
  const after = received(before, { head, whole: false, sets: [change], gone: [] }, now).sets.get('shop/a')
  expect(after).toMatchObject({ name: 'a', slots: [{ slot: 0 }, { slot: 1, ready: false }] })
  expect(after?.slots).toHaveLength(2)
  expect(after?.slots[0]).toBe(before.sets.get('shop/a')?.slots[0])
})

test('the filter finds sets by their own name, pods and nodes, and those with problems', () => {
  const slot = { slot: 0, pod: 'x-1', node: 'n7', ready: true, epoch: 1, followers: [] }
  const sets = new Map(
    [picture('a', { slots: [slot] }), picture('b', { ready: false })].map(it => [it.key, it]),
  )
  const names = (words: string, onlyTroubled = false) =>
    chosen(sets, { words, onlyTroubled }).map(({ name }) => name)
  expect(names('')).toEqual(['a', 'b'])
  expect([names('X-1'), names(' shop  N7 '), names('n8')]).toEqual([['a'], ['a'], []])
  expect(names('', true)).toEqual(['b'])
})
