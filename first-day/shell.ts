/** One shell of a user: variables, functions and descriptors of a command are there for the next one. */
import { spawn } from 'node:child_process'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { setTimeout as sleep } from 'node:timers/promises'

export interface Answer {
  readonly code: number
  /** Standard output and error. */
  readonly output: string
  readonly seconds: number
}

export interface Shell extends AsyncDisposable {
  /** @throws the reason of the signal, after the command has had time to clean up */
  type(command: string): Promise<Answer>
}

export interface ShellOptions {
  readonly cwd: string
  readonly env: NodeJS.ProcessEnv
  /** For the text and the output of the present command. */
  readonly scratch: string
  readonly signal: AbortSignal
}

/** For programs that take a cluster down when they are interrupted. */
const graceMs = 60_000

export function openShell({ cwd, env, scratch, signal }: ShellOptions): Shell {
  // A group of its own: Ctrl-C reaches only this program, which then ends the group.
  const child = spawn('bash', ['--norc', '--noprofile'], {
    ...{ cwd, env, detached: true },
    stdio: ['pipe', 'pipe', 'inherit'],
  })
  const closed = new Promise<void>(resolve => child.once('close', () => resolve()))
  // Commands write to a file, so the shell's own output has only their exit codes.
  const codes = createInterface({ input: child.stdout })[Symbol.asyncIterator]()
  const text = join(scratch, 'command')
  const out = join(scratch, 'output')

  const end = async (): Promise<void> => {
    if (child.exitCode !== null || child.signalCode !== null || child.pid === undefined) return
    kill(child.pid, 'SIGTERM')
    await Promise.race([closed, sleep(graceMs, undefined, { ref: false })])
    kill(child.pid, 'SIGKILL')
    await closed
  }
  return {
    async type(command) {
      await writeFile(text, command)
      await writeFile(out, '')
      signal.throwIfAborted()
      const started = performance.now()
      child.stdin.write(`eval "$(cat '${text}')" </dev/null >'${out}' 2>&1; echo $?\n`)
      const aborted = Promise.withResolvers<never>()
      const abort = () => aborted.reject(signal.reason)
      signal.addEventListener('abort', abort, { once: true })
      try {
        const { value, done } = await Promise.race([codes.next(), aborted.promise])
        if (done === true) throw new Error(`the shell has ended: ${command}`)
        const seconds = (performance.now() - started) / 1000
        return { code: Number(value), output: await readFile(out, 'utf8'), seconds }
      } finally {
        signal.removeEventListener('abort', abort)
      }
    },
    [Symbol.asyncDispose]: end,
  }
}

function kill(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(-pid, signal)
  } catch (error) {
    if (!(error instanceof Error && 'code' in error && error.code === 'ESRCH')) throw error
  }
}
