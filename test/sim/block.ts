/** Some rounds with one seed, in a process of their own where several run. */
import fc from 'fast-check'
import { runRound, type Scenario } from './model/round.ts'
import { scenario } from './model/scenarios.ts'

export const blockRounds = 100

export interface Block {
  readonly seed: number
  readonly rounds: number
}

export interface BlockResult {
  readonly rounds: number
  readonly virtualMs: number
  /** The smallest scenario that was found to fail, as JSON. */
  readonly failure?: { readonly scenario: string; readonly what: string }
}

/** To make a scenario smaller takes as long as it helps whoever reads it, ms. */
const shrinkMs = 120_000

export async function runBlock({ seed, rounds }: Block): Promise<BlockResult> {
  let done = 0
  let virtualMs = 0
  let failedAt: number | undefined
  let smallest: { scenario: Scenario; what: string } | undefined
  const { failed, errorInstance } = await fc.check(
    fc.asyncProperty(scenario, async each => {
      if (failedAt !== undefined && performance.now() - failedAt > shrinkMs) return
      const round = await runRound(each)
      virtualMs += round.virtualMs
      if (failedAt === undefined) done += 1
      if (round.violations.length === 0) return
      failedAt ??= performance.now()
      const what = round.violations.map(({ rule, at, what }) => `${rule} at ${at} ms: ${what}`).join('\n')
      smallest = { scenario: each, what }
      throw new Error(what)
    }),
    { numRuns: rounds, seed },
  )
  // The model itself has failed: that is no end without violation.
  if (failed && smallest === undefined) throw errorInstance
  return {
    rounds: done,
    virtualMs,
    ...(smallest && { failure: { scenario: JSON.stringify(smallest.scenario), what: smallest.what } }),
  }
}

if (process.argv[2] === 'serve')
  process.on('message', (block: Block) => {
    void runBlock(block).then(result => process.send?.(result))
  })
