/** The barrier at the beginning of a term: no decision may rest on knowledge from before it. */
import type { Clock } from './clock.ts'
import { GiveBack } from './election.ts'
import type { Log } from './log.ts'
import type { Reflector } from './reflector.ts'

export interface FreshenOptions {
  readonly caches: Readonly<Record<string, Pick<Reflector, 'refresh'>>>
  /** How long to wait, ms. A leader without fresh caches keeps another process from leading. */
  readonly patienceMs: number
  readonly clock: Clock
  readonly log: Log
}

/**
 * Resolves when each cache has a snapshot that was begun after this call. A watch does not show its own age: on a dead
 * connection, in a pause or behind a lagging server it shows a world without the previous leader's last actions.
 * @throws GiveBack when that takes too long; the signal's reason.
 */
export async function freshen(options: FreshenOptions, signal: AbortSignal): Promise<void> {
  const { caches, patienceMs, clock, log } = options
  const startedAt = clock.monotonic()
  const over = new AbortController()
  const onEnd = () => over.abort(signal.reason)
  if (signal.aborted) onEnd()
  else signal.addEventListener('abort', onEnd, { once: true })
  const missing = new Set(Object.keys(caches))
  const late = async () => {
    await clock.sleep(patienceMs, over.signal)
    throw new GiveBack(`no update of ${[...missing].join(', ')} within ${patienceMs} ms`)
  }
  const all = Promise.all(
    Object.entries(caches).map(async ([name, cache]) => {
      await cache.refresh(over.signal)
      missing.delete(name)
    }),
  )
  try {
    await Promise.race([all, late()])
    log.info({ seconds: (clock.monotonic() - startedAt) / 1000 }, 'caches are fresh')
  } finally {
    signal.removeEventListener('abort', onEnd)
    over.abort()
    await all.catch(() => {})
  }
}
