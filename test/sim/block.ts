/** Runs rounds with one seed; if several blocks run, each has a process of its own. */
import fc from 'fast-check'
import { runRound, type Scenario } from './model/round.ts'
import { granted, movingScenario, nappingScenario, scenario } from './model/scenarios.ts'

export const blockRounds = 100

export interface Block {
  readonly seed: number
  readonly rounds: number
  /** Primaries move in every scenario. */
  readonly moves?: boolean
  /** The set is suspended and resumes in every scenario. */
  readonly naps?: boolean
  /** Heirs get grants in every scenario. */
  readonly grants?: boolean
  /** Continue after a round that fails. */
  readonly keepGoing?: boolean
}

export interface Failure {
  /**
   * The first rule that the smallest scenario violates, and its commands; failures of the same kind are printed once.
   */
  readonly kind: string
  /** The smallest failing scenario that was found, as JSON. */
  readonly scenario: string
  readonly what: string
}

export interface BlockResult {
  readonly rounds: number
  readonly virtualMs: number
  /** How many Migrations ended in which way. */
  readonly moves: Readonly<Record<string, number>>
  readonly failures: readonly Failure[]
}

/** Time limit of shrinking a scenario, ms: enough to help its reader. */
const shrinkMs = 120_000

export async function runBlock(block: Block): Promise<BlockResult> {
  const { rounds, keepGoing = false } = block
  const failures: Failure[] = []
  const moves = new Map<string, number>()
  let virtualMs = 0
  let done = 0
  do {
    const part = await search(block, done)
    virtualMs += part.virtualMs
    addAll(moves, part.moves)
    done = part.until
    if (part.failure !== undefined) failures.push(part.failure)
  } while (keepGoing && done < rounds)
  return { rounds: done, virtualMs, moves: Object.fromEntries(moves), failures }
}

export function addAll(sum: Map<string, number>, counts: Readonly<Record<string, number>>): void {
  for (const [name, count] of Object.entries(counts)) sum.set(name, (sum.get(name) ?? 0) + count)
}

interface Part extends Pick<BlockResult, 'moves'> {
  /** Last round of the block that was run. */
  readonly until: number
  readonly virtualMs: number
  readonly failure: Failure | undefined
}

/** @param from rounds before it are skipped, because their result is known */
async function search({ seed, rounds, moves, naps, grants }: Block, from: number): Promise<Part> {
  const scenarios = naps ? nappingScenario : moves ? movingScenario : scenario
  let until = 0
  let virtualMs = 0
  const ends = new Map<string, number>()
  let failedAt: number | undefined
  let smallest: Failure | undefined
  const { failed, errorInstance } = await fc.check(
    fc.asyncProperty(grants ? granted(scenarios) : scenarios, async each => {
      if (failedAt === undefined) {
        until += 1
        if (until <= from) return
      } else if (performance.now() - failedAt > shrinkMs) return
      const round = await runRound(each)
      virtualMs += round.virtualMs
      if (failedAt === undefined) addAll(ends, round.moves)
      if (round.violations.length === 0) return
      failedAt ??= performance.now()
      const what = round.violations.map(({ rule, at, what }) => `${rule} at ${at} ms: ${what}`).join('\n')
      smallest = { kind: kindOf(round.violations[0]?.rule, each), scenario: JSON.stringify(each), what }
      throw new Error(what)
    }),
    { numRuns: rounds, seed },
  )
  // The model itself has failed, so this is not a run without violations.
  if (failed && smallest === undefined) throw errorInstance
  return { until, virtualMs, moves: Object.fromEntries(ends), failure: smallest }
}

const kindOf = (rule: string | undefined, { steps }: Scenario): string =>
  [rule, ...steps.map(({ command }) => command.type)].join(' ')

if (process.argv[2] === 'serve')
  process.on('message', (block: Block) => {
    void runBlock(block).then(result => process.send?.(result))
  })
