import { describe, expect, test } from 'vitest'
import { type BudgetView, budgetAction, budgetObstacle, type Existing, ruleFor, shortMs } from './budget.ts'
import { budgetSpec, ruleIn } from './budget-names.ts'

const absent: Existing = { own: { type: 'absent' }, other: undefined }
const view = (over: Partial<BudgetView> = {}): BudgetView => ({
  isProtected: true,
  ...{ hotBackups: 2, readyHotBackups: 2, shortForMs: undefined },
  budgets: { primary: absent, hotbackup: absent },
  ...over,
})
const both = (each: Existing): BudgetView['budgets'] => ({ primary: each, hotbackup: each })
const present = (rule: Extract<Existing['own'], { type: 'present' }>['rule']): Existing => ({
  own: { type: 'present', uid: 'u', resourceVersion: '7', rule },
  other: undefined,
})

describe('D17.budget', () => {
  test('no primary may be evicted, and hot backups only one after the other', () => {
    expect(budgetAction(view(), 'primary')).toEqual({ type: 'create', rule: { type: 'none' } })
    expect(budgetAction(view(), 'hotbackup')).toEqual({
      ...{ type: 'create', rule: { type: 'leaves', healthy: 1 } },
    })
  })

  test('the only hot backup may be evicted: a budget of one would wait for ever', () => {
    expect(ruleFor(view({ hotBackups: 1, readyHotBackups: 1 }), 'hotbackup')).toBeUndefined()
    expect(ruleFor(view({ hotBackups: 0, readyHotBackups: 0 }), 'hotbackup')).toBeUndefined()
  })

  test('a set that has had too few hot backups for a minute lets the others go, one after the other', () => {
    const rule = (readyHotBackups: number, shortForMs: number) =>
      ruleFor(view({ hotBackups: 4, readyHotBackups, shortForMs }), 'hotbackup')
    expect(rule(3, shortMs - 1)).toEqual({ type: 'leaves', healthy: 3 })
    expect(rule(3, shortMs)).toEqual({ type: 'leaves', healthy: 2 })
    expect(rule(1, shortMs)).toBeUndefined()
  })

  test('a set that keeps no memory, or does not want it, has no budget, and loses the one that it had', () => {
    const without = view({ isProtected: false, budgets: both(present({ type: 'none' })) })
    expect(budgetAction(without, 'primary')).toEqual({ type: 'delete', uid: 'u', resourceVersion: '7' })
    expect(budgetAction(view({ isProtected: false }), 'primary')).toBeUndefined()
    expect(budgetObstacle(without, 'primary')).toBeUndefined()
  })

  test('a budget of a user comes first, because a pod may have one only', () => {
    const theirs: Existing = { ...present({ type: 'none' }), other: 'theirs' }
    expect(budgetAction(view({ budgets: both(theirs) }), 'primary')).toMatchObject({ type: 'delete' })
    expect(budgetAction(view({ budgets: both({ ...absent, other: 'theirs' }) }), 'primary')).toBeUndefined()
    expect(budgetObstacle(view({ budgets: both(theirs) }), 'primary')).toContain('theirs')
    const mixed = view({ budgets: { primary: absent, hotbackup: theirs } })
    expect(budgetAction(mixed, 'primary')).toMatchObject({ type: 'create' })
  })

  test('a budget that was changed by hand is replaced, and one that is right is left', () => {
    expect(budgetAction(view({ budgets: both(present(undefined)) }), 'primary')).toEqual({
      ...{ type: 'replace', rule: { type: 'none' }, resourceVersion: '7' },
    })
    const right = view({ budgets: both(present({ type: 'none' })) })
    expect(budgetAction(right, 'primary')).toBeUndefined()
    expect(budgetAction(right, 'hotbackup')).toMatchObject({ type: 'replace' })
  })

  test('an object that has the name and is not of the set is left, and an event tells of it', () => {
    const taken = view({ budgets: both({ own: { type: 'taken' }, other: undefined }) })
    expect(budgetAction(taken, 'primary')).toBeUndefined()
    expect(budgetObstacle(taken, 'primary')).toContain('rename it')
    const leftover = view({ budgets: both({ own: { type: 'leftover' }, other: undefined }) })
    expect([budgetAction(leftover, 'primary'), budgetObstacle(leftover, 'primary')]).toEqual([
      undefined,
      undefined,
    ])
  })

  test('a rule is read as it was written', () => {
    for (const rule of [{ type: 'none' }, { type: 'leaves', healthy: 3 }] as const)
      expect(ruleIn(budgetSpec('web', 'hotbackup', rule), 'web', 'hotbackup')).toEqual(rule)
    expect(ruleIn(budgetSpec('other', 'primary', { type: 'none' }), 'web', 'primary')).toBeUndefined()
    expect(ruleIn(undefined, 'web', 'primary')).toBeUndefined()
    const more = { ...budgetSpec('web', 'primary', { type: 'none' }), minAvailable: '50%' }
    expect(ruleIn(more, 'web', 'primary')).toBeUndefined()
  })
})
