import { expect, it } from 'vitest'
import { createFakeClock } from '../kube/clock.ts'
import { createTerms } from '../slot/act/term.ts'
import { createFailoverHistory } from './failover-history.ts'

it('a store that never came keeps nothing waiting after the term', async () => {
  const clock = createFakeClock()
  let reads = 0
  const get = async () => {
    reads += 1
    throw new Error('no Redis')
  }
  const store = { store: { durable: true, get }, keep() {}, drop() {} }
  const terms = createTerms()
  const term = terms.begin()
  const life = new AbortController().signal
  const failoverHistory = createFailoverHistory('uid', { store, clock, terms, life, changed: () => {} })
  failoverHistory.open(undefined)
  await clock.advance(5_000)
  expect([reads, clock.sleepers()]).toEqual([6, 1])
  term.stopLeading()
  term.end()
  await clock.advance(60_000)
  expect([reads, clock.sleepers()]).toEqual([6, 0])
})
