import { spawn } from 'node:child_process'
import type { Mutation } from './mutant.ts'

const hooks = new URL('hooks.ts', import.meta.url).href

/** Runs a script of ours in a process whose modules have these mutations, and returns its output. */
export function runMutated(
  mutations: readonly Mutation[],
  [script, ...args]: readonly [script: string, ...args: string[]],
  input = '',
): Promise<string> {
  return new Promise((resolve, reject) => {
    const child = spawn(process.execPath, ['--import', hooks, script, ...args], {
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
      if (code === 0) resolve(output)
      else reject(new Error(`the mutant did not run: ${errors}`))
    })
    child.stdin.end(input)
  })
}
