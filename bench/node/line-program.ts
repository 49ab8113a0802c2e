import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'

/** A program that prints lines, and ends with its standard input. */
export interface LineProgram<T> {
  /** Lines that the program has printed since the last `forget`. */
  readonly lines: readonly T[]
  /** The reason why it prints nothing any more. */
  readonly failure: Error | undefined
  forget(): void
  stop(): Promise<void>
}

/**
 * @param name for its failure
 * @param parse returns undefined for a line that is not to be kept
 */
export function startLineProgram<T>(
  name: string,
  [command = '', ...args]: readonly string[],
  parse: (line: string) => T | undefined,
): LineProgram<T> {
  const child = spawn(command, args, { stdio: ['pipe', 'pipe', 'inherit'] })
  let lines: T[] = []
  let failure: Error | undefined
  const ended = once(child, 'exit')
  child.on('error', error => {
    failure = error
  })
  child.on('exit', (code, signal) => {
    failure ??= new Error(`${name} ended (${signal ?? code})`)
  })
  createInterface({ input: child.stdout }).on('line', line => {
    const parsed = parse(line)
    if (parsed !== undefined) lines.push(parsed)
  })
  return {
    get lines() {
      return lines
    },
    get failure() {
      return failure
    },
    forget() {
      lines = []
    },
    async stop() {
      child.stdin.end()
      await ended
    },
  }
}
