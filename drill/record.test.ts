import { expect, it } from 'vitest'
import { choiceOf } from './choice.ts'
import { randomOf } from './random.ts'
import { mustBeNew, type Plan, parseRecord, type Row, roundsOf, seedOf } from './record.ts'

const plan: Plan = { type: 'plan', seed: 7, rounds: 5, from: 1, what: ['all'], grant: false }
const row = (round: number): Row => ({
  ...{ type: 'round', round, commit: 'abc1234', nemeses: ['kill'] },
  ...{ outages: [100], figures: [], violations: [] },
})
const text = (...entries: readonly (Plan | Row)[]) =>
  entries.map(entry => `${JSON.stringify(entry)}\n`).join('')

it('a drill continues with the round after the last one of its record', () => {
  const record = parseRecord(text(plan, row(1), row(2)), 'file')
  expect(record).toEqual({ plan, rows: [row(1), row(2)] })
  expect(roundsOf(record)).toEqual([3, 4, 5])
})

it('a round whose line was cut off is played again', () => {
  const record = parseRecord(text(plan, row(1), row(2)).slice(0, -5), 'file')
  expect(roundsOf(record)).toEqual([2, 3, 4, 5])
})

it('a drill begins with the round that was asked for', () => {
  expect(roundsOf({ plan: { ...plan, from: 4 }, rows: [] })).toEqual([4, 5])
  expect(roundsOf({ plan: { ...plan, from: 4 }, rows: [row(4)] })).toEqual([5])
  expect(roundsOf({ plan, rows: [row(5)] })).toEqual([])
})

it('a round has the same nemeses when earlier rounds are left out', () => {
  const choose = choiceOf(plan.what)
  const names = (round: number) => choose(randomOf(seedOf(plan, round)), round).map(({ name }) => name)
  const whole = [1, 2, 3, 4, 5].map(names)
  expect([4, 5].map(names)).toEqual(whole.slice(3))
})

it('a new record takes the place of no file', async () => {
  await mustBeNew(`${import.meta.filename}.jsonl`)
  await expect(mustBeNew(import.meta.filename)).rejects.toThrow(`--continue ${import.meta.filename}`)
})

it('another file is no record', () => {
  expect(() => parseRecord('{"type":"birth"}\n', 'x.jsonl')).toThrow('x.jsonl: no record')
  expect(() => parseRecord('', 'x.jsonl')).toThrow('x.jsonl: no record')
})
