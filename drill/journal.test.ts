import { expect, it } from 'vitest'
import { check } from './check/check.ts'
import type { Entry } from './history.ts'
import { createJournal } from './journal.ts'
import { honest, plain, podOf } from './selftest/honest.ts'

/** A round that ends with epoch 3, and the next one, in which only the old pods of the first are heard again. */
function twoRounds(more: readonly Entry[]) {
  const journal = createJournal()
  const first = honest({ ...plain, takeovers: 2 })
  for (const entry of first) journal.tell(entry)
  journal.turn()
  for (const entry of more) journal.tell(entry)
  return { first, violations: check(journal.history()).violations.map(({ rule }) => rule) }
}

it('the takeovers of a former round are not judged again', () => {
  expect(twoRounds([]).violations).not.toContain('Unprovoked')
})

it('a pod of a former round that answers again is recognised', () => {
  const { first } = twoRounds([])
  const old = first.findLast(
    entry => entry.type === 'call' && entry.slot === 0 && entry.answer?.pod === podOf(0, 1),
  )
  if (old?.type !== 'call') throw new Error('the model made no call')
  const late = { ...old, word: 'late', start: 1e9, end: 1e9 + 1 }
  expect(twoRounds([late]).violations).toContain('OldEpoch')
})
