import { expect, test } from 'vitest'
import type { SlotStatus } from '../../api/slot-status.ts'
import { createFakeClock } from '../../kube/clock.ts'
import { set } from '../testing/objects.ts'
import type { World } from '../world.ts'
import { aliveEveryMs, createFeed } from './feed.ts'
import type { Head, Message } from './wire.ts'

const named = (name: string, readyReplicas = 1) => {
  const { metadata, ...rest } = set({ readyReplicas })
  return { ...rest, metadata: { ...metadata, name } }
}
const worldOf = (...sets: World['sets']): World => ({ sets, pods: [], reports: undefined })

function opened(first: World) {
  const clock = createFakeClock()
  let world = first
  let lost: Head['lost']
  const head = (): Head => ({
    ...{ server: 's', version: 'v', now: clock.now(), isFilled: true, missing: [] },
    ...(lost && { lost }),
  })
  const feed = createFeed({ world: () => world, head, clock })
  const stop = new AbortController()
  const ended = feed.run(stop.signal).catch(() => undefined)
  const heard: Message[] = []
  return {
    ...{ feed, heard },
    listen: (into = heard) => feed.subscribe(text => into.push(JSON.parse(text))),
    async change(next: World) {
      world = next
      feed.changed()
      await clock.advance(1_000)
    },
    async lose() {
      lost = { since: 1, why: 'away' }
      feed.changed()
      await clock.advance(1_000)
    },
    async step(next: World, ms: number) {
      world = next
      feed.changed()
      await clock.advance(ms)
    },
    quiet: () => clock.advance(aliveEveryMs),
    async [Symbol.asyncDispose]() {
      stop.abort()
      await ended
    },
  }
}
const namesOf = ({ sets }: Message) => sets.map(({ key }) => key.split('/')[1])

test('a page gets everything first, and then what has changed', async () => {
  await using it = opened(worldOf(named('a'), named('b')))
  it.listen()
  expect(it.heard.map(message => [message.whole, ...namesOf(message)])).toEqual([[true, 'a', 'b']])
  it.heard.length = 0
  await it.change(worldOf(named('a'), named('b', 0)))
  await it.change(worldOf(named('b', 0)))
  expect(it.heard.filter(({ sets, gone }) => sets.length + gone.length > 0)).toMatchObject([
    { whole: false, sets: [{ key: 'shop/b', facts: { primaries: { inPlace: 0 } }, slots: [] }], gone: [] },
    { whole: false, sets: [], gone: ['shop/a'] },
  ])
})

test('a second page gets everything, and the first one misses nothing', async () => {
  await using it = opened(worldOf(named('a')))
  it.listen()
  const second: Message[] = []
  await it.change(worldOf(named('a', 0)))
  it.heard.length = 0
  it.listen(second)
  expect(second.map(namesOf)).toEqual([['a']])
  await it.change(worldOf(named('a', 1)))
  for (const heard of [it.heard, second])
    expect(heard.at(-1)).toMatchObject({ whole: false, sets: [{ facts: { primaries: { inPlace: 1 } } }] })
})

test('the feed reports the loss of the API server, and keeps sending signs of life', async () => {
  await using it = opened(worldOf(named('a')))
  it.listen()
  await it.lose()
  expect(it.heard.at(-1)).toMatchObject({ head: { lost: { why: 'away' } }, sets: [] })
  it.heard.length = 0
  await it.quiet()
  await it.quiet()
  expect(it.heard.length).toBeGreaterThan(0)
})

test('newer states of slots come once a second, and do not delay anything else', async () => {
  const slot = (generation: number, ready = true): SlotStatus => ({
    ...{ slot: 0, pod: 'a-0', epoch: 1, ready, generation },
  })
  const withSlot = (one: SlotStatus) => {
    const { status, ...rest } = named('a')
    return worldOf({ ...rest, status: { ...status, slots: [one] } })
  }
  await using it = opened(withSlot(slot(1)))
  it.listen()
  await it.quiet()
  it.heard.length = 0
  for (let generation = 2; generation <= 31; generation++) await it.step(withSlot(slot(generation)), 100)
  const told = it.heard.flatMap(({ sets }) => sets.flatMap(({ slots }) => slots))
  expect(told.length).toBeGreaterThanOrEqual(2)
  expect(told.length).toBeLessThanOrEqual(4)
  it.heard.length = 0
  await it.step(withSlot(slot(32, false)), 200)
  expect(it.heard.flatMap(({ sets }) => sets)).toMatchObject([
    { slots: [{ ready: false, generation: 32 }], goneSlots: [] },
  ])
  expect(it.heard[0]?.sets[0]).not.toHaveProperty('facts')
})
