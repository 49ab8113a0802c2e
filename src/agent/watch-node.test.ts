import { expect, test } from 'vitest'
import { watchSentinel } from './watch-node.ts'

const log = { info: () => {}, warn: () => {}, error: () => {} }

test('a sentinel that ends is replaced at once, and not at the next check', async () => {
  const stop = new AbortController()
  const ended = Promise.withResolvers<void>()
  const state = { sentinel: 'first' }
  const renewed = Promise.withResolvers<void>()
  const begun = performance.now()
  const running = watchSentinel(
    { log },
    {
      sentinel: { lost: () => ended.promise },
      presentSentinel: async () => 'second',
      ensureSentinel: async () => 'second',
    },
    state,
    renewed.resolve,
    stop.signal,
  )
  ended.resolve()
  await renewed.promise
  stop.abort()
  await running
  expect(state.sentinel).toBe('second')
  expect(performance.now() - begun).toBeLessThan(5_000)
})

test('the wait ends with the signal', async () => {
  const stop = new AbortController()
  const never = async (): Promise<string> => {
    throw new Error('no check is due')
  }
  const running = watchSentinel(
    { log },
    {
      sentinel: { lost: () => new Promise<void>(() => {}) },
      presentSentinel: never,
      ensureSentinel: never,
    },
    { sentinel: 'first' },
    () => {},
    stop.signal,
  )
  stop.abort()
  await running
})
