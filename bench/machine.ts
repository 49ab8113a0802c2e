import { readFileSync, writeFileSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { cpus, getPriority, release, setPriority, totalmem } from 'node:os'

/** Describes the measuring machine in one line. */
export function machineLine(): string {
  const gib = (totalmem() / 2 ** 30).toFixed(0)
  return `${cpus().length} x ${cpus()[0]?.model.trim() ?? 'CPU'}, ${gib} GiB, Linux ${release()}`
}

/** Figures from a busy machine are worth less; this note says so. */
export function waitedNote(share: number | undefined): string {
  return share === undefined
    ? ''
    : `; some process waited for a processor ${(share * 100).toFixed(0)} % of the time`
}

/**
 * Gives this process precedence over the machine's others: an observer that waits for a processor would add its own
 * wait to its measurements. Its probers inherit the priority. Does nothing for unprivileged users.
 */
export function takePrecedence(): void {
  prioritise(-20)
  const before = sessionPriority()
  if (before === undefined || !prioritiseSession(-20)) return
  // The terminal's session outlives this process, so restore its priority.
  process.once('exit', () => prioritiseSession(before))
}

/** Starts a process that is not part of the observer, at normal priority. */
export async function withoutPrecedence<T>(start: () => Promise<T>): Promise<T> {
  const before = getPriority()
  prioritise(0)
  try {
    return await start()
  } finally {
    prioritise(before)
  }
}

function prioritise(nice: number): void {
  try {
    setPriority(nice)
  } catch (error) {
    // An EACCES of the system call arrives as a SystemError with its code in `info`.
    if ((error as { info?: { code?: string } }).info?.code !== 'EACCES') throw error
  }
}

/**
 * If the kernel groups processes by session (CONFIG_SCHED_AUTOGROUP), a priority counts only within the session, which
 * weighs as much as one process of priority 0; see sched(7).
 */
const autogroup = '/proc/self/autogroup'

function sessionPriority(): number | undefined {
  try {
    const nice = /nice (-?\d+)/.exec(readFileSync(autogroup, 'latin1'))?.[1]
    return nice === undefined ? undefined : Number(nice)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error
    return undefined
  }
}

/** @returns true if the priority was set */
function prioritiseSession(nice: number): boolean {
  try {
    writeFileSync(autogroup, String(nice))
    return true
  } catch (error) {
    // EAGAIN: an unprivileged process may also not try it often.
    if (!['EPERM', 'EACCES', 'EAGAIN'].includes((error as NodeJS.ErrnoException).code ?? '')) throw error
    return false
  }
}

/**
 * Starts to measure the share of time in which a task waited for a processor; the result is undefined if the kernel
 * does not report it. The kernel adds its counts in steps, so over a few milliseconds the share can exceed 1.
 * @param waited returns the total time in which some task waited, µs
 * @param now returns ms
 */
export async function startPressure(
  waited: () => Promise<number | undefined> = waitedUs,
  now: () => number = () => performance.now(),
): Promise<() => Promise<number | undefined>> {
  const began = { us: await waited(), at: now() }
  return async () => {
    const us = await waited()
    if (us === undefined || began.us === undefined) return undefined
    return (us - began.us) / 1000 / (now() - began.at)
  }
}

async function waitedUs(): Promise<number | undefined> {
  try {
    return parsePressure(await readFile('/proc/pressure/cpu', 'utf8'))
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw error
  }
}

/** Returns the total time in which some task waited, µs. */
export function parsePressure(text: string): number {
  const total = /^some .*total=(\d+)$/m.exec(text)?.[1]
  if (total === undefined) throw new Error('not a pressure file')
  return Number(total)
}
