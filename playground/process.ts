import { readFile } from 'node:fs/promises'
import { setTimeout as sleep } from 'node:timers/promises'

/**
 * An unambiguous identity of a process: a pid is reused, but a pid with its start time (clock ticks since boot) and
 * boot is not. Every process that outlives this program is recorded this way, so that a stale record never leads to the
 * death of an unrelated process.
 */
export interface ProcessIdentity {
  readonly pid: number
  readonly startTime: string
  readonly bootId: string
}

/** Returns field 22 of /proc/PID/stat. The command in field 2 may contain spaces and parentheses. */
export function startTimeOf(stat: string): string {
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  const startTime = fields[19]
  if (startTime === undefined) throw new Error(`not a /proc/PID/stat: ${stat.slice(0, 80)}`)
  return startTime
}

/** Returns the state letter of /proc/PID/stat; a process in state `Z` has ended and only waits to be reaped. */
export function stateOf(stat: string): string {
  return stat.slice(stat.lastIndexOf(')') + 2, stat.lastIndexOf(')') + 3)
}

/** Returns the identity of a running process, or undefined if no process (or only a zombie) has that pid. */
export async function identify(pid: number): Promise<ProcessIdentity | undefined> {
  try {
    const stat = await readFile(`/proc/${pid}/stat`, 'utf8')
    if (stateOf(stat) === 'Z' || stateOf(stat) === 'X') return undefined
    return { pid, startTime: startTimeOf(stat), bootId: await bootId() }
  } catch (error) {
    if (isGone(error)) return undefined
    throw error
  }
}

export async function isAlive(identity: ProcessIdentity): Promise<boolean> {
  const now = await identify(identity.pid)
  return now !== undefined && now.startTime === identity.startTime && now.bootId === identity.bootId
}

/** Sends a signal if the process is still the recorded one. */
export async function signalProcess(identity: ProcessIdentity, signal: NodeJS.Signals): Promise<void> {
  if (!(await isAlive(identity))) return
  try {
    process.kill(identity.pid, signal)
  } catch (error) {
    if (!isGone(error)) throw error
  }
}

/** Waits until the process has ended. Returns false if it still runs after `timeoutMs`. */
export async function waitGone(identity: ProcessIdentity, timeoutMs: number): Promise<boolean> {
  for (const end = performance.now() + timeoutMs; ; ) {
    if (!(await isAlive(identity))) return true
    if (performance.now() > end) return false
    await sleep(20)
  }
}

async function bootId(): Promise<string> {
  return (await readFile('/proc/sys/kernel/random/boot_id', 'utf8')).trim()
}

/**
 * True if a process or a cgroup ended between listing and reading: ENOENT, or ESRCH from /proc, or ENODEV from a
 * cgroup.
 */
export function isGone(error: unknown): boolean {
  const code = (error as NodeJS.ErrnoException).code
  return code === 'ENOENT' || code === 'ESRCH' || code === 'ENODEV'
}
