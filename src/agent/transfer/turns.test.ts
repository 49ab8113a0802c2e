import { describe, expect, test } from 'vitest'
import { createTurns } from './turns.ts'

const never = new AbortController().signal

/** Takes a turn and notes in `order` when it begins. */
const track =
  (turns: ReturnType<typeof createTurns>, order: string[]) =>
  (node: string, name: string, namespace = node) => {
    const end = turns.take({ node, namespace }, never)
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
    // a has two turns; its third request does not block b.
    expect(order).toEqual(['a1', 'a2', 'b1'])
    await b1()
    await settle()
    expect(order).toEqual(['a1', 'a2', 'b1', 'c1'])
    await a1()
    await a1()
    await settle()
    expect(order).toEqual(['a1', 'a2', 'b1', 'c1', 'a3'])
    await Promise.all([a2(), a3(), c1()])
  })

  test('one that gives up waiting gives its place to the next', async () => {
    const turns = createTurns({ forAll: 1, forEach: 1 })
    const order: string[] = []
    const end = await turns.take({ node: 'a', namespace: 'x' }, never)
    const stop = new AbortController()
    const given = turns.take({ node: 'b', namespace: 'x' }, stop.signal)
    track(turns, order)('c', 'c')
    stop.abort(new Error('enough'))
    await expect(given).rejects.toThrow('enough')
    await expect(turns.take({ node: 'd', namespace: 'x' }, stop.signal)).rejects.toThrow('enough')
    end()
    await settle()
    expect(order).toEqual(['c'])
  })

  test('D10.turns: a namespace with many slots waits for its own turns, and others come round', async () => {
    const turns = createTurns({ forAll: 2, forEach: 9 })
    const order: string[] = []
    const take = track(turns, order)
    const ends = Array.from({ length: 6 }, (_, i) => take('n', `greedy${i}`, 'greedy'))
    await settle()
    // It gets one of two places, so that the next namespace does not wait for its transfers.
    expect(order).toEqual(['greedy0'])
    ends.push(take('n', 'modest0', 'modest'), take('n', 'modest1', 'modest'), take('n', 'third0', 'third'))
    await settle()
    expect(order).toEqual(['greedy0', 'modest0'])
    // greedy0 and modest0 end one after the other, and then the others in the order of their begin.
    const endOf = new Map(
      ['greedy0', 'greedy1', 'greedy2', 'greedy3', 'greedy4', 'greedy5', 'modest0', 'modest1', 'third0'].map(
        (name, i) => [name, ends[i]] as const,
      ),
    )
    for (let i = 0; i < 9; i += 1) {
      await endOf.get(order[i] ?? '')?.()
      await settle()
    }
    expect(order).toEqual([
      ...['greedy0', 'modest0', 'greedy1', 'modest1', 'third0'],
      ...['greedy2', 'greedy3', 'greedy4', 'greedy5'],
    ])
  })

  test('D10.turns: namespaces that have as many turns have them in turn, whoever asked first', async () => {
    const turns = createTurns({ forAll: 1, forEach: 1 })
    const order: string[] = []
    const end = await turns.take({ node: 'n', namespace: 'x' }, never)
    const take = track(turns, order)
    const ends = ['a', 'a', 'a', 'b', 'b', 'c'].map((namespace, i) =>
      take('n', `${namespace}${i}`, namespace),
    )
    end()
    for (const name of ['a0', 'b3', 'c5', 'a1', 'b4', 'a2']) {
      await settle()
      await ends[Number(name[1])]?.()
    }
    expect(order).toEqual(['a0', 'b3', 'c5', 'a1', 'b4', 'a2'])
  })

  test('one end lets all begin that waited for it alone', async () => {
    const turns = createTurns({ forAll: 3, forEach: 1 })
    const order: string[] = []
    const take = track(turns, order)
    const x1 = take('a', 'x1', 'x')
    const x2 = take('b', 'x2', 'x')
    const x3 = take('c', 'x3', 'x')
    const y1 = take('a', 'y1', 'y')
    await settle()
    expect(order).toEqual(['x1', 'x2'])
    await x1()
    await settle()
    expect(order.toSorted()).toEqual(['x1', 'x2', 'x3', 'y1'])
    await Promise.all([x2(), x3(), y1()])
  })
})
