import { describe, expect, test } from 'vitest'
import { type BudgetView, budgetAction, budgetObstacle } from './budget.ts'

const view = (over: Partial<BudgetView> = {}): BudgetView => ({
  isProtected: true,
  ...{ own: { type: 'absent' }, other: undefined },
  ...over,
})
const present = (isRight: boolean) => ({ type: 'present', uid: 'u', resourceVersion: '7', isRight }) as const
const gone = { type: 'delete', uid: 'u', resourceVersion: '7' }

describe('D17.budget', () => {
  test('a set that keeps memory has one', () => {
    expect(budgetAction(view())).toEqual({ type: 'create' })
    expect(budgetAction(view({ own: present(true) }))).toBeUndefined()
  })

  test('a set that keeps no memory, or does not want it, has none, and loses the one that it had', () => {
    expect(budgetAction(view({ isProtected: false, own: present(true) }))).toEqual(gone)
    expect(budgetAction(view({ isProtected: false }))).toBeUndefined()
    expect(budgetObstacle(view({ isProtected: false, other: 'theirs' }))).toBeUndefined()
  })

  test('a budget of a user comes first, because a pod may have one only', () => {
    expect(budgetAction(view({ own: present(true), other: 'theirs' }))).toEqual(gone)
    expect(budgetAction(view({ other: 'theirs' }))).toBeUndefined()
    expect(budgetObstacle(view({ other: 'theirs' }))).toContain('theirs')
  })

  test('one that was changed by hand is replaced', () => {
    expect(budgetAction(view({ own: present(false) }))).toEqual({ type: 'replace', resourceVersion: '7' })
  })

  test('an object that has the name and is not of the set is left, and an event tells of it', () => {
    const taken = view({ own: { type: 'taken' } })
    expect([budgetAction(taken), budgetObstacle(taken)]).toEqual([
      undefined,
      expect.stringContaining('rename it'),
    ])
    const leftover = view({ own: { type: 'leftover' } })
    expect([budgetAction(leftover), budgetObstacle(leftover)]).toEqual([undefined, undefined])
  })
})
