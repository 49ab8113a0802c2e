import { expect, it } from 'vitest'
import { createStops } from './stops.ts'

function stand() {
  let now = 1_000
  const stops = createStops({ monotonic: () => now })
  return {
    pass: (ms: number) => (now += ms),
    note: (handover: number, stoodMs?: number) => stops.noteStopping('m', { handover, stoodMs }),
    callOff: () => stops.noteStopping('m', undefined),
    serving: (serves = true) => stops.noteServing('m', serves),
  }
}

it('a stop has begun when the agent says that it did, not with the request', () => {
  const { pass, note, serving } = stand()
  note(1)
  expect(serving(false)).toBeUndefined()
  // It saves the primary once more before it stops it.
  pass(5_000)
  note(1, 400)
  pass(100)
  // The same report, seen again.
  note(1, 400)
  note(1)
  expect(serving()).toBe(500)
  pass(100)
  expect(serving()).toBe(500)
})

it('an agent of an earlier version says nothing of it: then it has begun with the request', () => {
  const { pass, note, serving } = stand()
  note(1)
  pass(700)
  note(1)
  expect(serving()).toBe(700)
})

it('another handover is another stop: the pod has run in between', () => {
  const { pass, note, serving } = stand()
  note(1, 400)
  pass(5_000)
  note(2)
  pass(1_000)
  note(2, 300)
  expect(serving()).toBe(300)
})

it('nothing is known of a stop that was called off, or that another process saw begin', () => {
  const { note, callOff, serving } = stand()
  expect(serving()).toBeUndefined()
  note(1, 400)
  callOff()
  expect(serving()).toBeUndefined()
})
