import { expect, it } from 'vitest'
import { createStops } from './stops.ts'

function stand() {
  let now = 1_000
  return { stops: createStops({ monotonic: () => now }), pass: (ms: number) => (now += ms) }
}

it('a stop has begun when the agent says that it did, not with the request', () => {
  const { stops, pass } = stand()
  stops.noteStopping('m', true)
  expect(stops.noteServing('m', false)).toBeUndefined()
  // It saves the primary once more before it stops it.
  pass(5_000)
  stops.noteStopping('m', true, 400)
  pass(100)
  // The same report, seen again.
  stops.noteStopping('m', true, 400)
  expect(stops.noteServing('m', true)).toBe(500)
  pass(100)
  expect(stops.noteServing('m', true)).toBe(500)
})

it('an agent of an earlier version says nothing of it: then it has begun with the request', () => {
  const { stops, pass } = stand()
  stops.noteStopping('m', true)
  pass(700)
  stops.noteStopping('m', true)
  expect(stops.noteServing('m', true)).toBe(700)
})

it('nothing is known of a stop that was called off, or that another process saw begin', () => {
  const { stops } = stand()
  expect(stops.noteServing('m', true)).toBeUndefined()
  stops.noteStopping('m', true, 400)
  stops.noteStopping('m', false)
  expect(stops.noteServing('m', true)).toBeUndefined()
})
