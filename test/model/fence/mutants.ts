/** The guards of the rule, each taken out. The search must find a way to two primaries for each. */
import type { Mutation } from '../../sim/mutants/mutant.ts'
import type { Bounds } from './model.ts'

export interface FenceMutant extends Mutation {
  readonly name: string
  /** Small bounds in which a counterexample exists. */
  readonly bounds: Bounds
}

const of = (holders: number, changes = 0): Bounds => ({ holders, ticks: 1, changes, reboots: 0 })
const rule = (file: string) => `src/slot/decide/fence/${file}.ts`

export const fenceMutants: readonly FenceMutant[] = [
  {
    name: 'too few statements',
    file: rule('quorum'),
    find: 'n - answersNeeded(n) + 1',
    replace: 'n - answersNeeded(n)',
    bounds: of(1),
  },
  {
    name: 'an answer counts for as long as a voter waits',
    file: rule('primary'),
    find: 'const answerCountsFor = 2 / 3',
    replace: 'const answerCountsFor = 1',
    bounds: of(1),
  },
  {
    name: 'the latest answer decides',
    file: rule('primary'),
    find: '[answersNeeded(voters.length) - 1]',
    replace: '[0]',
    bounds: of(2),
  },
  {
    name: 'one of two sets of voters is enough',
    file: rule('primary'),
    find: 'Math.min(...ends)',
    replace: 'Math.max(...ends)',
    bounds: of(2, 1),
  },
  {
    name: 'a voter answers after its statement',
    file: rule('voter'),
    find: 'epoch > stated',
    replace: 'epoch >= stated',
    bounds: of(1),
  },
  {
    name: 'a voter states silence at once',
    file: rule('voter'),
    find: 'now - heardAt >= nodeTimeoutMs',
    replace: 'now - heardAt >= 0',
    bounds: of(1),
  },
  {
    name: 'voters change at once',
    file: rule('electorate'),
    find: 'return isSame(voters, wanted) ? now : { version: version + 1, voters, next: [...wanted].sort() }',
    replace: 'return isSame(voters, wanted) ? now : { version: version + 1, voters: wanted }',
    bounds: of(2, 2),
  },
  {
    name: 'voters change without the word of the primary',
    file: rule('electorate'),
    find: 'if (acknowledged === undefined || acknowledged < version) return now',
    replace: 'if (acknowledged === undefined || acknowledged < 0) return now',
    bounds: of(2, 2),
  },
  {
    name: 'the primary asks only the earlier voters',
    file: rule('electorate'),
    find: 'next === undefined ? [voters] : [voters, next]',
    replace: '[voters, voters]',
    bounds: of(2, 2),
  },
  {
    name: 'the primary asks only the next voters',
    file: rule('electorate'),
    find: 'next === undefined ? [voters] : [voters, next]',
    replace: '[next ?? voters]',
    bounds: of(2, 1),
  },
  {
    name: 'statements of anybody count',
    file: rule('fenced'),
    find: 'voters.filter(voter => silent.has(voter)).length',
    replace: 'silent.size',
    bounds: of(3, 1),
  },
]
