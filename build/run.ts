import { spawn } from 'node:child_process'

export interface RunOptions {
  readonly signal?: AbortSignal
  readonly env?: Readonly<Record<string, string>>
  readonly cwd?: string
}

/**
 * Runs a program to its end and returns its standard output.
 * @throws with the last lines of its standard error if it fails; the abort reason when `signal` fires (the program is
 * killed)
 */
export function run(program: string, args: readonly string[], options: RunOptions = {}): Promise<string> {
  options.signal?.throwIfAborted()
  return new Promise((resolve, reject) => {
    const child = spawn(program, args, {
      stdio: ['ignore', 'pipe', 'pipe'],
      env: { ...process.env, LC_ALL: 'C', ...options.env },
      ...(options.cwd !== undefined && { cwd: options.cwd }),
      ...(options.signal && { signal: options.signal }),
    })
    const output: Buffer[] = []
    let errors = ''
    child.stdout.on('data', (chunk: Buffer) => output.push(chunk))
    child.stderr.on('data', (chunk: Buffer) => {
      errors = (errors + chunk.toString()).slice(-4000)
    })
    child.on('error', reject)
    child.on('close', (code, killedBy) => {
      if (code === 0) {
        resolve(Buffer.concat(output).toString())
        return
      }
      const end = killedBy === null ? `exit code ${code}` : `signal ${killedBy}`
      reject(new Error(`${program} ${args.join(' ').slice(0, 300)}: ${end}\n${errors.trim()}`))
    })
  })
}
