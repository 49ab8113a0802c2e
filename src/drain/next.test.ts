import { describe, expect, test } from 'vitest'
import { decideDrain, mostWrites, pauseAfter, pauses } from './next.ts'
import type { Attempt, Callable, LeavingPrimary } from './view.ts'

const now = 1_000_000_000
const primary = (name: string, over: Partial<LeavingPrimary> = {}): LeavingPrimary => ({
  ...{ namespace: 'shop', set: { name: 'web', uid: 'set' }, slot: 0, name, uid: `uid-${name}` },
  ...{ node: 'n1', why: 'it is cordoned', isMoving: false, waits: undefined, last: undefined, next: 1 },
  ...over,
})
const failed = (number: number, agoMs: number): Attempt => ({
  ...{ number, endedAt: now - agoMs, reason: 'NoNode', message: 'no node' },
})
const callable = (over: Partial<Callable>): Callable => ({
  ...{ namespace: 'shop', name: 'web-a-drain-1', uid: 'u', resourceVersion: '3', node: 'n1' },
  isNeedless: false,
  ...over,
})
const names = (primaries: readonly LeavingPrimary[]) =>
  decideDrain({ primaries, migrations: [] }, now).creations.map(({ name }) => name)

describe('D17.rule', () => {
  test('each primary gets a Migration, whose name follows from the pod and the number of the try', () => {
    expect(names([primary('web-b'), primary('web-a'), primary('web-c', { isMoving: true })])).toEqual([
      'web-a-drain-1',
      'web-b-drain-1',
    ])
  })

  test('after a failure the next one follows later and later, and never ends', () => {
    const at = (last: Attempt) =>
      decideDrain({ primaries: [primary('p', { last, next: last.number + 1 })], migrations: [] }, now)
    expect(at(failed(1, pauses.firstMs - 1))).toMatchObject({ creations: [], againAfterMs: 1 })
    expect(at(failed(1, pauses.firstMs)).creations).toMatchObject([{ name: 'p-drain-2' }])
    expect([1, 2, 3, 5, 6, 100, 999].map(pauseAfter)).toEqual([
      15_000, 30_000, 60_000, 240_000, 300_000, 300_000, 300_000,
    ])
  })

  test('primaries that have never failed come first', () => {
    expect(names([primary('a', { last: failed(2, 600_000), next: 3 }), primary('b')])).toEqual([
      'b-drain-1',
      'a-drain-3',
    ])
  })

  test('a Migration that nothing asks for any more is called off', () => {
    const needless = callable({ isNeedless: true })
    const plan = decideDrain({ primaries: [], migrations: [needless, callable({ uid: 'v' })] }, now)
    expect(plan.deletions).toEqual([needless])
  })

  test('a pass writes a bounded number, and the next one soon writes the others', () => {
    const many = Array.from({ length: mostWrites + 5 }, (_, index) => primary(`p${index}`))
    const plan = decideDrain({ primaries: many, migrations: [] }, now)
    expect([plan.creations.length, plan.againAfterMs]).toEqual([mostWrites, 1_000])
  })

  test('nothing is made while no name is free, and time alone changes nothing', () => {
    const plan = decideDrain({ primaries: [primary('p', { next: undefined })], migrations: [] }, now)
    expect(plan).toEqual({ creations: [], deletions: [], waiting: [], againAfterMs: undefined })
  })
})
