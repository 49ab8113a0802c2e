import { expect, it } from 'vitest'
import { makeCandidate } from '../testing/slots.ts'
import { createInFlightPromotions } from './in-flight-promotions.ts'
import type { Outcome } from './outcome.ts'

it('a primary that is woken again keeps its slot meanwhile', async () => {
  const pod = makeCandidate('p', 'primary', { slot: 3, epoch: 7, gate: 'waiting', ready: false })
  const inFlight = createInFlightPromotions(() => Promise.resolve())
  const ended = Promise.withResolvers<Outcome>()
  const late = Promise.withResolvers<Outcome>()
  const outcome = await inFlight.start(pod, 'primary', undefined, () => ended.promise, late.resolve)
  expect(outcome).toBeUndefined()
  expect(inFlight.of(pod.uid)).toEqual({ to: 'primary', slot: 3, epoch: 7 })
  ended.resolve({ type: 'spent', action: { type: 'wake', pod }, why: 'silent' })
  await late.promise
  expect(inFlight.of(pod.uid)).toBeUndefined()
})

it('once the gate has answered, the pass waits for what is left to write', async () => {
  const pod = makeCandidate('p', 'coldbackup')
  const patience = Promise.withResolvers<void>()
  const written = Promise.withResolvers<Outcome>()
  const conversion = (answered: () => void) => {
    answered()
    return written.promise
  }
  const inFlight = createInFlightPromotions(() => patience.promise)
  const waited = inFlight.start(pod, 'hotbackup', undefined, conversion, () => {})
  patience.resolve()
  await patience.promise
  const outcome: Outcome = { type: 'done', action: { type: 'wake', pod }, pod: undefined }
  setTimeout(() => written.resolve(outcome), 10)
  expect(await waited).toEqual(outcome)
})
