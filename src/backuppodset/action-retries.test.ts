import { expect, it } from 'vitest'
import { createFakeClock } from '../kube/clock.ts'
import { KubeError } from '../kube/errors.ts'
import { type Attempt, createActionRetries } from './action-retries.ts'

const failed = (what: Attempt['what'], error: unknown = new KubeError('Forbidden', 'quota')): Attempt => ({
  what,
  type: 'failed',
  error,
})
const done = (what: Attempt['what']): Attempt => ({ what, type: 'done' })

it('counts each kind of action by itself: what always fails delays nothing else', async () => {
  const clock = createFakeClock()
  const retries = createActionRetries(clock)
  let pause = 0
  for (let i = 0; i < 20; i += 1) {
    pause = retries.note([failed('create')]) ?? 0
    await clock.advance(pause)
  }
  expect(pause).toBe(30_000)
  expect(retries.note([failed('convert'), failed('create')])).toBe(5)
  expect(retries.note([done('convert'), done('status')])).toBeUndefined()
})

it('a pass that an event has brought before its time counts no further failure', async () => {
  const clock = createFakeClock()
  const retries = createActionRetries(clock)
  retries.note([failed('create')])
  await clock.advance(5)
  expect(retries.note([failed('create')])).toBe(10)
  for (let i = 0; i < 50; i += 1) expect(retries.note([failed('create')])).toBe(10)
  await clock.advance(4)
  expect(retries.note([failed('create')])).toBe(6)
})

it('begins again after a success, and waits as long as the server asks', async () => {
  const clock = createFakeClock()
  const retries = createActionRetries(clock)
  retries.note([failed('create')])
  await clock.advance(5)
  retries.note([failed('create'), done('delete')])
  retries.note([done('create')])
  expect(retries.note([failed('create')])).toBe(5)
  retries.note([done('create')])
  const throttled = new KubeError('Throttled', 'busy', { retryAfterMs: 2000 })
  expect(retries.note([failed('create', throttled)])).toBe(2000)
})
