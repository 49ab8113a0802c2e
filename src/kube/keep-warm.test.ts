import { expect, it } from 'vitest'
import { createFakeClock } from './clock.ts'
import { keepWarm } from './keep-warm.ts'
import { silentLog } from './log.ts'

it('asks over all connections at once, again and again, whatever the answers are, until it is told to stop', async () => {
  const clock = createFakeClock()
  const stop = new AbortController()
  let underWay = 0
  let most = 0
  let asked = 0
  const api = {
    request: async () => {
      asked += 1
      underWay += 1
      most = Math.max(most, underWay)
      await new Promise(resolve => setImmediate(resolve))
      underWay -= 1
      if (asked % 2 === 0) throw new Error('refused')
      return { status: 200, body: {} }
    },
  }
  const running = keepWarm({ api, connections: 4, clock, log: silentLog, everyMs: 1000 }, stop.signal)
  await clock.untilSleepers(1)
  expect([asked, most]).toEqual([4, 4])
  await clock.advance(1000)
  await clock.untilSleepers(1)
  expect([asked, most]).toEqual([8, 4])
  stop.abort()
  await running
  expect(asked).toBe(8)
})
