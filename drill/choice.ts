/** Which nemeses a round has. */
import { changes, moves, nemeses, special } from './nemesis/nemeses.ts'
import type { Nemesis } from './nemesis/nemesis.ts'
import type { Random } from './random.ts'

export type Choose = (random: Random, round: number) => readonly Nemesis[]

/**
 * @param what `all`, `moves`, or nemeses that take turns; `A+B`: both in one round
 * @throws Error if there is no such nemesis
 */
export function choiceOf(what: readonly string[]): Choose {
  const draw = draws.get(what[0] ?? '')
  if (draw !== undefined) return draw
  const chosen = what.map(combination)
  return (_, round) => chosen[(round - 1) % chosen.length] ?? []
}

function combination(text: string): readonly Nemesis[] {
  return text.split('+').map(name => {
    const found = [...nemeses, ...special].find(nemesis => nemesis.name === name)
    if (found === undefined) throw new Error(`no nemesis ${name}: npm run drill -- --list`)
    return found
  })
}

/** Half of the rounds have one nemesis, so that each also has outages of its own. */
function several(random: Random): readonly Nemesis[] {
  const many = random.of([1, 1, 2, 3])
  const found: Nemesis[] = []
  while (found.length < many) {
    const nemesis = random.of(nemeses.filter(({ family }) => found.every(each => each.family !== family)))
    found.push(nemesis)
  }
  return found
}

/** A move, and something that happens meanwhile. */
const duringMove = (random: Random): readonly Nemesis[] => [
  random.of(moves),
  random.of([...nemeses, ...changes]),
]

const draws: ReadonlyMap<string, Choose> = new Map([
  ['all', several],
  ['moves', duringMove],
])

/** True if a seed draws the nemeses of each round, so that nothing says how many rounds there are. */
export const isDrawn = (what: readonly string[]): boolean => draws.has(what[0] ?? '')
