import { setTimeout as sleep } from 'node:timers/promises'

export interface Patience {
  readonly patienceMs: number
  /** Time between two attempts. */
  readonly pollMs: number
  readonly signal?: AbortSignal | undefined
}

/**
 * Calls `ask` repeatedly. Resolves with the first answer that is neither undefined nor false.
 * @param what names the awaited event in the error
 * @throws Error after `patienceMs` without such an answer, and the signal's reason
 */
export async function until<T>(
  what: string,
  ask: () => Promise<T | undefined | false>,
  { patienceMs, pollMs, signal }: Patience,
): Promise<T> {
  const deadline = performance.now() + patienceMs
  for (;;) {
    const answer = await ask()
    if (answer !== undefined && answer !== false) return answer
    if (performance.now() > deadline) throw new Error(`not within ${patienceMs / 1000} s: ${what}`)
    await sleep(pollMs, undefined, signal ? { signal } : {})
  }
}
