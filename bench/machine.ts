import { readFileSync, writeFileSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { cpus, getPriority, release, setPriority, totalmem } from 'node:os'

/** What the figures were measured on, in one line. */
export function machineLine(): string {
  const gib = (totalmem() / 2 ** 30).toFixed(0)
  return `${cpus().length} x ${cpus()[0]?.model.trim() ?? 'CPU'}, ${gib} GiB, Linux ${release()}`
}

/**
 * Puts this process before the others of the machine: a watcher that waits for a processor would add its own wait to
 * what it measures. Its probers inherit it. Does nothing for users who may not.
 */
export function takePrecedence(): void {
  prioritise(-20)
  const before = sessionPriority()
  if (before === undefined || !prioritiseSession(-20)) return
  // The terminal goes on when this process has ended.
  process.once('exit', () => prioritiseSession(before))
}

/** Starts something that is not the observer's own. */
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
    // An EACCES of the system call comes as a SystemError with its code in `info`.
    if ((error as { info?: { code?: string } }).info?.code !== 'EACCES') throw error
  }
}

/**
 * Where the kernel groups processes by session (CONFIG_SCHED_AUTOGROUP), a priority counts within the session alone, which
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

/** @returns whether it could. */
function prioritiseSession(nice: number): boolean {
  try {
    writeFileSync(autogroup, String(nice))
    return true
  } catch (error) {
    // EAGAIN: who may not do it may not do it often either.
    if (!['EPERM', 'EACCES', 'EAGAIN'].includes((error as NodeJS.ErrnoException).code ?? '')) throw error
    return false
  }
}

/**
 * Measures how much of the time somebody waited for a processor; undefined where the kernel does not tell. The kernel
 * adds what it has counted in steps, so over some milliseconds the share can be more than 1.
 * @param waited total time in which some task waited, µs.
 * @param now ms.
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

/** Total time in which some task waited, µs. */
export function parsePressure(text: string): number {
  const total = /^some .*total=(\d+)$/m.exec(text)?.[1]
  if (total === undefined) throw new Error('not a pressure file')
  return Number(total)
}
