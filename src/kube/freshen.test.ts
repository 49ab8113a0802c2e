import { expect, test } from 'vitest'
import { createFakeClock } from './clock.ts'
import { GiveBack } from './election.ts'
import { freshen } from './freshen.ts'
import { silentLog } from './log.ts'

const never = (signal: AbortSignal) =>
  new Promise<void>((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)))

test('a term begins when all caches are fresh', async () => {
  const clock = createFakeClock()
  const pods = Promise.withResolvers<void>()
  let isOver = false
  const caches = { pods: { refresh: () => pods.promise }, sets: { refresh: async () => {} } }
  const fresh = freshen({ caches, patienceMs: 5000, clock, log: silentLog }, new AbortController().signal)
  void fresh.then(() => {
    isOver = true
  })
  await clock.advance(4000)
  expect(isOver).toBe(false)
  pods.resolve()
  await fresh
  expect(clock.sleepers()).toBe(0)
})

test('a term whose caches stay old is given back, and says which they are', async () => {
  const clock = createFakeClock()
  const caches = { pods: { refresh: never }, sets: { refresh: async () => {} } }
  const fresh = freshen({ caches, patienceMs: 5000, clock, log: silentLog }, new AbortController().signal)
  const failed = fresh.catch((error: unknown) => error)
  await clock.advance(5000)
  const error = await failed
  expect(error).toBeInstanceOf(GiveBack)
  expect(String(error)).toContain('no update of pods within')
})

test('leadership that is lost meanwhile ends the wait', async () => {
  const clock = createFakeClock()
  const lost = new AbortController()
  const options = { caches: { pods: { refresh: never } }, patienceMs: 5000, clock, log: silentLog }
  const failed = freshen(options, lost.signal).catch(String)
  lost.abort(new Error('lost'))
  expect(await failed).toBe('Error: lost')
})
