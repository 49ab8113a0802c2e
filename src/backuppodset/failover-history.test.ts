import { expect, it } from 'vitest'
import { createFakeClock } from '../kube/clock.ts'
import { createFailoverHistory } from './failover-history.ts'

it('a store that never came keeps nothing waiting after the term', async () => {
  const clock = createFakeClock()
  let reads = 0
  const get = async () => {
    reads += 1
    throw new Error('no Redis')
  }
  const store = { store: { durable: true, get }, keep() {}, drop() {} }
  const failoverHistory = createFailoverHistory(store, { clock, changed: () => {} })
  failoverHistory.open('uid', undefined)
  await clock.advance(5_000)
  expect([reads, clock.sleepers()]).toEqual([6, 1])
  failoverHistory.clear()
  await clock.advance(60_000)
  expect([reads, clock.sleepers()]).toEqual([6, 0])
})
