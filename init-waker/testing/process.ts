import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'
import { constants } from 'node:os'
import { buildApp } from './build.ts'

/** A process started for a test, and its output so far. */
export interface Started {
  /** Its pid in this namespace; in a pid namespace of its own, the pid of its PID 1 here. */
  readonly pid: number
  stdout(): string
  stderr(): string
  /** Exit code, or 128 + the signal that killed it. */
  readonly exit: Promise<number>
  /** Kills it, with its whole pid namespace if it has one. Resolves when it is gone. */
  [Symbol.asyncDispose](): Promise<void>
}

export interface StartOptions {
  /** Runs as PID 1 of a pid namespace of its own. Needs root; see `cannotUnshare`. */
  readonly pidNamespace?: boolean
  /** A descriptor for standard error, instead of collecting it. */
  readonly stderr?: number
}

/** The reason why pid namespaces are unavailable here, or undefined if they work. */
export const cannotUnshare: string | undefined =
  process.getuid?.() !== 0
    ? 'needs root for unshare --pid'
    : spawnSync('unshare', ['--pid', '--fork', 'true']).status !== 0
      ? 'needs unshare --pid, which fails here'
      : undefined

const sanitizers = { ASAN_OPTIONS: 'exitcode=99:detect_leaks=1', UBSAN_OPTIONS: 'print_stacktrace=1' }

export async function start(
  program: string,
  args: readonly string[],
  options: StartOptions = {},
): Promise<Started> {
  const [command, rest] = options.pidNamespace
    ? [await buildApp(), ['namespace', program, ...args]]
    : [program, args]
  const child = spawn(command, rest, {
    stdio: ['ignore', 'pipe', options.stderr ?? 'pipe'],
    env: { ...process.env, ...sanitizers },
  })
  let out = ''
  let errors = ''
  child.stdout?.on('data', (chunk: Buffer) => {
    out += chunk.toString()
  })
  child.stderr?.on('data', (chunk: Buffer) => {
    errors += chunk.toString()
  })
  const exit = exitOf(child)
  const outer = child.pid
  if (outer === undefined) throw new Error(`${command} did not start`)
  const pid = options.pidNamespace ? await firstChild(outer, exit) : outer
  return {
    pid,
    stdout: () => out,
    stderr: () => errors,
    exit,
    async [Symbol.asyncDispose]() {
      // The death of a PID 1 ends its namespace. Without one, kill its children too: they hold our pipes.
      const left = options.pidNamespace ? [] : childrenOf(outer)
      if (child.exitCode === null && child.signalCode === null) [pid, ...left].forEach(killIfThere)
      await exit
    },
  }
}

/**
 * Resolves with the awaited value. On an error it disposes of `owned` first, because the caller has nothing
 * to dispose of.
 */
export async function orDispose<T>(owned: AsyncDisposable, awaited: Promise<T>): Promise<T> {
  try {
    return await awaited
  } catch (error) {
    await owned[Symbol.asyncDispose]()
    throw error
  }
}

function killIfThere(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error
  }
}

function exitOf(child: ChildProcess): Promise<number> {
  return new Promise((resolve, reject) => {
    child.on('error', reject)
    child.on('close', (code, signal) => {
      resolve(signal === null ? (code ?? -1) : 128 + constants.signals[signal])
    })
  })
}

async function firstChild(parent: number, ended: Promise<number>): Promise<number> {
  let over = false
  void ended.then(() => {
    over = true
  })
  while (!over) {
    const [pid] = childrenOf(parent)
    if (pid !== undefined) return pid
    await new Promise(resolve => setTimeout(resolve, 2))
  }
  return parent
}

/** Returns the children of a process, zombies included; empty if it is gone. */
export function childrenOf(pid: number): readonly number[] {
  return processes().flatMap(process => (process.parent === pid ? [process.pid] : []))
}

/** Returns the state letter of a process (R, S, T, Z, ...), or undefined if it is gone and reaped. */
export function stateOf(pid: number): string | undefined {
  return processes().find(process => process.pid === pid)?.state
}

function processes(): readonly { readonly pid: number; readonly state: string; readonly parent: number }[] {
  return readdirSync('/proc').flatMap(name => {
    const fields = /^\d+$/.test(name) ? statOf(Number(name)) : undefined
    return fields?.[0] === undefined
      ? []
      : [{ pid: Number(name), state: fields[0], parent: Number(fields[1]) }]
  })
}

/** Returns the fields of /proc/PID/stat from the state on, or undefined if the process is gone. */
export function statOf(pid: number): readonly string[] | undefined {
  const stat = readProc(`/proc/${pid}/stat`)
  // The name is in parentheses and may contain anything, spaces and parentheses too.
  return stat?.slice(stat.lastIndexOf(')') + 2).split(' ')
}

/** Returns one field of /proc/PID/status, e.g. `SigBlk`, or undefined if the process is gone. */
export function statusField(pid: number, field: string): string | undefined {
  return readProc(`/proc/${pid}/status`)?.match(new RegExp(`^${field}:\\s*(.*)$`, 'm'))?.[1]
}

/** Returns one figure of /proc/PID/smaps_rollup in bytes, e.g. `Rss`. */
export function memoryOf(pid: number, field: string): number {
  const kilobytes = readFileSync(`/proc/${pid}/smaps_rollup`, 'utf8').match(
    new RegExp(`^${field}:\\s*(\\d+) kB$`, 'm'),
  )?.[1]
  if (kilobytes === undefined) throw new Error(`no ${field} of process ${pid}`)
  return Number(kilobytes) * 1024
}

function readProc(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8')
  } catch (error) {
    // ESRCH: the process ended between open and read.
    if (['ENOENT', 'ESRCH'].includes((error as NodeJS.ErrnoException).code ?? '')) return undefined
    throw error
  }
}

/**
 * Runs a program in the pid namespace of a process, as an agent on the node does. Resolves with its standard
 * output when it has ended and written a line; an orphan of it may keep the other end open.
 */
export function inNamespaceOf(pid: number, command: readonly string[]): Promise<string> {
  return new Promise((resolve, reject) => {
    const child = spawn('nsenter', ['--target', String(pid), '--pid', '--', ...command], {
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    let out = ''
    child.stdout.on('data', (chunk: Buffer) => {
      out += chunk.toString()
      if (child.exitCode !== null && out.endsWith('\n')) resolve(out)
    })
    child.on('exit', () => {
      if (out.endsWith('\n')) resolve(out)
    })
    child.on('error', reject)
    child.on('close', () => resolve(out))
  })
}

/** Every signal that a process can catch: all but SIGKILL and SIGSTOP. */
export const catchableSignals: readonly number[] = Array.from({ length: 64 }, (_, index) => index + 1).filter(
  number => number !== 9 && number !== 19,
)
