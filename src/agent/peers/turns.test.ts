import { describe, expect, test } from 'vitest'
import { createTurns } from './turns.ts'

const never = new AbortController().signal

/** Takes a turn and notes in `order` when it begins. */
const track = (turns: ReturnType<typeof createTurns>, order: string[]) => (key: string, name: string) => {
  const end = turns.take(key, never)
  void end.then(() => order.push(name))
  return async () => (await end)()
}
const settle = () => new Promise(resolve => setImmediate(resolve))

describe('turns', () => {
  test('are limited for each and for all, and taken in their order', async () => {
    const turns = createTurns({ forAll: 3, forEach: 2 })
    const order: string[] = []
    const take = track(turns, order)
    const a1 = take('a', 'a1')
    const a2 = take('a', 'a2')
    const a3 = take('a', 'a3')
    const b1 = take('b', 'b1')
    const c1 = take('c', 'c1')
    await settle()
    // a has its two; b is not held up by a's third.
    expect(order).toEqual(['a1', 'a2', 'b1'])
    expect(turns.waiting).toBe(2)
    await b1()
    await settle()
    expect(order).toEqual(['a1', 'a2', 'b1', 'c1'])
    await a1()
    await a1()
    await settle()
    expect(order).toEqual(['a1', 'a2', 'b1', 'c1', 'a3'])
    await Promise.all([a2(), a3(), c1()])
    expect(turns.waiting).toBe(0)
  })

  test('one that gives up waiting gives its place to the next', async () => {
    const turns = createTurns({ forAll: 1, forEach: 1 })
    const order: string[] = []
    const end = await turns.take('a', never)
    const stop = new AbortController()
    const given = turns.take('b', stop.signal)
    track(turns, order)('c', 'c')
    stop.abort(new Error('enough'))
    await expect(given).rejects.toThrow('enough')
    await expect(turns.take('d', stop.signal)).rejects.toThrow('enough')
    end()
    await settle()
    expect(order).toEqual(['c'])
    expect(turns.waiting).toBe(0)
  })
})
