/** Some rounds with one seed, in a process of their own where several run. */
import fc from 'fast-check'
import { runRound, type Scenario } from './model/round.ts'
import { scenario } from './model/scenarios.ts'

export const blockRounds = 100

export interface Block {
  readonly seed: number
  readonly rounds: number
  /** Go on behind a round that fails. */
  readonly keepGoing?: boolean
}

export interface Failure {
  /** The first rule that the smallest scenario violates, and what happens in it: others of the kind are told once. */
  readonly kind: string
  /** The smallest scenario that was found to fail, as JSON. */
  readonly scenario: string
  readonly what: string
}

export interface BlockResult {
  readonly rounds: number
  readonly virtualMs: number
  readonly failures: readonly Failure[]
}

/** To make a scenario smaller takes as long as it helps whoever reads it, ms. */
const shrinkMs = 120_000

export async function runBlock({ seed, rounds, keepGoing = false }: Block): Promise<BlockResult> {
  const failures: Failure[] = []
  let virtualMs = 0
  let done = 0
  do {
    const part = await search(seed, rounds, done)
    virtualMs += part.virtualMs
    done = part.until
    if (part.failure !== undefined) failures.push(part.failure)
  } while (keepGoing && done < rounds)
  return { rounds: done, virtualMs, failures }
}

interface Part {
  /** Up to which round of the block. */
  readonly until: number
  readonly virtualMs: number
  readonly failure: Failure | undefined
}

/** @param from the rounds before it are known. */
async function search(seed: number, rounds: number, from: number): Promise<Part> {
  let until = 0
  let virtualMs = 0
  let failedAt: number | undefined
  let smallest: Failure | undefined
  const { failed, errorInstance } = await fc.check(
    fc.asyncProperty(scenario, async each => {
      if (failedAt === undefined) {
        until += 1
        if (until <= from) return
      } else if (performance.now() - failedAt > shrinkMs) return
      const round = await runRound(each)
      virtualMs += round.virtualMs
      if (round.violations.length === 0) return
      failedAt ??= performance.now()
      const what = round.violations.map(({ rule, at, what }) => `${rule} at ${at} ms: ${what}`).join('\n')
      smallest = { kind: kindOf(round.violations[0]?.rule, each), scenario: JSON.stringify(each), what }
      throw new Error(what)
    }),
    { numRuns: rounds, seed },
  )
  // The model itself has failed: that is no end without violation.
  if (failed && smallest === undefined) throw errorInstance
  return { until, virtualMs, failure: smallest }
}

const kindOf = (rule: string | undefined, { steps }: Scenario): string =>
  [rule, ...steps.map(({ command }) => command.type)].join(' ')

if (process.argv[2] === 'serve')
  process.on('message', (block: Block) => {
    void runBlock(block).then(result => process.send?.(result))
  })
