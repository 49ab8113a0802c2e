import { setImmediate as turn } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { createFakeClock } from '../../kube/clock.ts'
import { createPrecedence } from './precedence.ts'

/** A write that gives way, and whether it has begun. */
function waiting() {
  const clock = createFakeClock()
  const precedence = createPrecedence(clock)
  const write = () => {
    const said = { begins: false }
    void precedence.giveWay().then(() => {
      said.begins = true
    })
    return said
  }
  return { clock, precedence, write }
}

test('a write begins at once while nothing is under way, and after the last of what is', async () => {
  const { clock, precedence, write } = waiting()
  const [early, first, second] = [write(), Promise.withResolvers<number>(), Promise.withResolvers<never>()]
  await turn()
  await clock.advance(0)
  expect(early).toEqual({ begins: true })
  const results = [precedence.during(first.promise), precedence.during(second.promise)]
  const late = write()
  await turn()
  first.resolve(1)
  await clock.advance(100)
  expect(late).toEqual({ begins: false })
  second.reject(new Error('refused'))
  await clock.advance(0)
  expect(late).toEqual({ begins: true })
  expect(await Promise.allSettled(results)).toMatchObject([{ value: 1 }, { reason: { message: 'refused' } }])
  const next = write()
  await turn()
  await clock.advance(0)
  expect(next).toEqual({ begins: true })
})

test('a write gives way to work that begins some microtasks later', async () => {
  const { clock, precedence, write } = waiting()
  const late = write()
  for (let step = 0; step < 20; step += 1) await Promise.resolve()
  const work = Promise.withResolvers<void>()
  void precedence.during(work.promise)
  await turn()
  await clock.advance(0)
  expect(late).toEqual({ begins: false })
  work.resolve()
  await clock.advance(0)
  expect(late).toEqual({ begins: true })
})

test('a write waits for 150 ms at most', async () => {
  const { clock, precedence, write } = waiting()
  void precedence.during(new Promise(() => undefined))
  const late = write()
  await turn()
  await clock.advance(149)
  expect(late).toEqual({ begins: false })
  await clock.advance(1)
  expect(late).toEqual({ begins: true })
})
