/** Checks that the simulation notices when a fix is reverted. */
import { runRound, type Scenario } from '../model/round.ts'
import { mutants } from './list.ts'
import type { Mutant } from './mutant.ts'
import { runMutated } from './mutated.ts'

export interface Verdict {
  /** The first violated rule; undefined: the simulation noticed nothing. */
  readonly rule: string | undefined
  /** The scenario that violates it. */
  readonly scenario: Scenario | undefined
  readonly output: string
}

const entry = new URL('run-one.ts', import.meta.url).pathname

/** Runs a mutant's scenarios in a process whose modules have its mutations. */
export async function tryMutant({ mutations, scenarios }: Mutant): Promise<Verdict> {
  const output = await runMutated(mutations, [entry], JSON.stringify(scenarios))
  const [, index] = /^scenario (\d+)$/m.exec(output) ?? []
  return {
    rule: /^(\w+) at /m.exec(output)?.[1],
    scenario: index === undefined ? undefined : scenarios[Number(index)],
    output,
  }
}

/** How many further seeds are tried with each of a mutant's scenarios. */
const moreSeeds = 40

/**
 * Tries a mutant's scenarios with further seeds. A change of the code moves the random times of all that comes after it, so that a
 * moment which a scenario needs may come with other seeds only.
 * @returns the first scenario that has a violation with the mutation, and none without it.
 */
async function searchSeed(mutant: Mutant): Promise<Verdict> {
  const bases = new Map(mutant.scenarios.map(({ seed: _, ...rest }) => [JSON.stringify(rest), rest]))
  let left: readonly Scenario[] = Array.from({ length: moreSeeds }, (_, k) => k + 1).flatMap(seed =>
    [...bases.values()].map(base => ({ ...base, seed })),
  )
  for (;;) {
    const verdict = await tryMutant({ ...mutant, scenarios: left })
    const { scenario } = verdict
    if (scenario === undefined || (await runRound(scenario)).violations.length === 0) return verdict
    left = left.slice(left.indexOf(scenario) + 1)
  }
}

/** @returns the exit code */
export async function tryMutants(names: readonly string[]): Promise<number> {
  const chosen = mutants.filter(({ name }) => names.length === 0 || names.includes(name))
  const unknown = names.find(name => !mutants.some(mutant => mutant.name === name))
  if (unknown !== undefined) throw new Error(`there is no mutant "${unknown}"`)
  let caught = 0
  for (const mutant of chosen) {
    const { rule } = await tryMutant(mutant)
    if (rule !== undefined) caught += 1
    const found = rule === undefined ? (await searchSeed(mutant)).scenario : undefined
    console.log(
      `${(rule ?? (found ? 'OTHER SEED' : 'NOT NOTICED')).padEnd(16)} ${mutant.finding.padEnd(10)} ${mutant.name.padEnd(20)} ${mutant.what}`,
    )
    if (found !== undefined) console.log(`  noticed with ${JSON.stringify(found)}`)
  }
  const findings = new Set(chosen.map(({ finding }) => finding)).size
  console.log(
    `${caught} of ${chosen.length} mutants are noticed, which take back fixes of ${findings} findings`,
  )
  return caught === chosen.length ? 0 : 1
}
