/** The barrier at the beginning of a term: nothing is decided on what was known before it. */
import type { Clock } from './clock.ts'
import { GiveBack } from './election.ts'
import type { Log } from './log.ts'
import type { Reflector } from './reflector.ts'

export interface FreshenOptions {
  readonly caches: Readonly<Record<string, Pick<Reflector, 'refresh'>>>
  /** For so long, ms; a leader that knows nothing new keeps another one from leading. */
  readonly patienceMs: number
  readonly clock: Clock
  readonly log: Log
}

/**
 * Resolves when each cache has a snapshot that was begun after this call. A watch says nothing of its own age: on a dead
 * connection, in a pause or behind a lagging server it shows a world in which what the leader before this one has done
 * did not happen. @throws GiveBack when that takes too long; the signal's reason.
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
    throw new GiveBack(`no news of ${[...missing].join(', ')} within ${patienceMs} ms`)
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
