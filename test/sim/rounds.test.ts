import { describe, expect, it } from 'vitest'
import { runBlock } from './block.ts'
import { movesOf, type Told, tryMove } from './faulted/moves.ts'
import { rows } from './faulted/rows.ts'
import { runRound } from './model/round.ts'
import { mutants } from './mutants/list.ts'
import { tryMutant } from './mutants/try.ts'

it('100 scenarios at random violate nothing', async () => {
  const { failures, rounds } = await runBlock({ seed: 20_261_124, rounds: 100 })
  expect(failures).toEqual([])
  expect(rounds).toBe(100)
}, 600_000)

it('30 scenarios at random in which primaries move violate nothing', async () => {
  const { failures, moves } = await runBlock({ seed: 20_261_126, rounds: 30, moves: true })
  expect(failures).toEqual([])
  expect(moves['succeeded']).toBeGreaterThan(10)
}, 600_000)

it('30 scenarios at random in which the set is suspended and resumes violate nothing', async () => {
  const { failures, rounds } = await runBlock({ seed: 20_261_127, rounds: 30, naps: true })
  expect(failures).toEqual([])
  expect(rounds).toBe(30)
}, 600_000)

describe('a fix that is taken back is noticed', () => {
  it.each(mutants)(
    '$name: $what',
    async mutant => {
      const { rule, scenario } = await tryMutant(mutant)
      expect(rule).toBeDefined()
      if (scenario === undefined) throw new Error('no scenario violates anything')
      // Not because of the scenario itself.
      expect((await runRound(scenario)).violations).toEqual([])
    },
    120_000,
  )
})

it('MP-23: a move with one fault, for each kind of fault, leaves the slot with its source or its target', async () => {
  const told: Told[] = []
  for (const move of movesOf(rows.length, 20_261_128)) told.push(await tryMove(move))
  expect(told.filter(({ wrong }) => wrong.length > 0)).toEqual([])
  expect(told.map(({ row }) => row)).toEqual(rows.map(({ name }) => name))
}, 600_000)
