import { setTimeout as sleep } from 'node:timers/promises'
import { now } from './history.ts'

export async function until(
  holds: () => Promise<boolean>,
  limitMs: number,
  signal: AbortSignal,
): Promise<void> {
  for (const end = now() + limitMs; !(await holds()); ) {
    if (now() > end) throw new Error(`not within ${limitMs / 1000} s`)
    await sleep(250, undefined, { signal })
  }
}
