/** Checks that the simulation notices when a fix is reverted. */
import { spawn } from 'node:child_process'
import { mutants } from './list.ts'
import type { Mutant } from './mutant.ts'

export interface Verdict {
  /** The first violated rule; undefined: the simulation noticed nothing. */
  readonly rule: string | undefined
  readonly output: string
}

const hooks = new URL('hooks.ts', import.meta.url).href
const entry = new URL('run-one.ts', import.meta.url).pathname

/** Runs a mutant's scenarios in a process whose modules have its mutations. */
export function tryMutant({ mutations, scenarios }: Mutant): Promise<Verdict> {
  return new Promise((resolve, reject) => {
    const child = spawn(process.execPath, ['--import', hooks, entry], {
      stdio: ['pipe', 'pipe', 'pipe'],
      env: { ...process.env, SIM_MUTATIONS: JSON.stringify(mutations) },
    })
    let output = ''
    let errors = ''
    child.stdout.setEncoding('utf8').on('data', (text: string) => {
      output += text
    })
    child.stderr.setEncoding('utf8').on('data', (text: string) => {
      errors += text
    })
    child.on('error', reject)
    child.on('close', code => {
      if (code !== 0) reject(new Error(`the mutant did not run: ${errors}`))
      else resolve({ rule: /^(\w+) at /m.exec(output)?.[1], output })
    })
    child.stdin.end(JSON.stringify(scenarios))
  })
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
