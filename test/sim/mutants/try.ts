/** Checks that the simulation notices when a fix is reverted. */
import { mutants } from './list.ts'
import type { Mutant } from './mutant.ts'
import { runMutated } from './mutated.ts'

export interface Verdict {
  /** The first violated rule; undefined: the simulation noticed nothing. */
  readonly rule: string | undefined
  readonly output: string
}

const entry = new URL('run-one.ts', import.meta.url).pathname

/** Runs a mutant's scenarios in a process whose modules have its mutations. */
export async function tryMutant({ mutations, scenarios }: Mutant): Promise<Verdict> {
  const output = await runMutated(mutations, [entry], JSON.stringify(scenarios))
  return { rule: /^(\w+) at /m.exec(output)?.[1], output }
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
    console.log(
      `${(rule ?? 'NOT NOTICED').padEnd(16)} ${mutant.finding.padEnd(10)} ${mutant.name.padEnd(20)} ${mutant.what}`,
    )
  }
  const findings = new Set(chosen.map(({ finding }) => finding)).size
  console.log(
    `${caught} of ${chosen.length} mutants are noticed, which take back fixes of ${findings} findings`,
  )
  return caught === chosen.length ? 0 : 1
}
