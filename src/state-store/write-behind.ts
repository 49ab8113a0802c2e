import { type Clock, elapses } from '../kube/clock.ts'
import type { Log } from '../kube/log.ts'
import type { StateStoreMetrics } from './metrics.ts'
import type { StateStore } from './state-store.ts'

/**
 * Lets the store follow what this process has in memory, in the background and as fast as it can: nobody waits for it,
 * of each key only the last value counts, and what a store has lost is written again. So a store that is away costs one
 * entry a key and no more, however long it is.
 */
export interface WriteBehind {
  /** This is what the key holds from now on. `value` is asked whenever it is to be written; undefined: not any more. */
  keep(key: string, value: () => Uint8Array | undefined): void
  /** The key holds nothing. */
  drop(key: string): void
  /** For reading; loads have to be rare and bounded. */
  readonly store: Pick<StateStore, 'get' | 'durable'>
  /** Whether the last operation succeeded; what could not be done since is under way. */
  healthy(): boolean
  /** Keys whose last change is not written yet. */
  pending(): number
  /** Waits until all is written, for so long. */
  flush(timeoutMs: number): Promise<void>
  /** Another process looks after the keys from now on: they are left as they are. */
  abandon(): void
  run(signal: AbortSignal): Promise<void>
}

/** Whatever nobody renews is gone after so long: also what could not be deleted, because the store was away, ms. */
const ttlMs = 7 * 24 * 3_600_000
/** How often what is kept is renewed, and written again where it is gone, ms. */
const renewMs = 30_000
const firstRetryMs = 200
const longestRetryMs = 10_000
/** Deletions that wait for a store to come back; further ones are left to the end of their time. */
const mostDeletions = 10_000

export function createWriteBehind(
  store: StateStore,
  { clock, metrics, log }: { readonly clock: Clock; readonly metrics?: StateStoreMetrics; readonly log: Log },
): WriteBehind {
  const kept = new Map<string, () => Uint8Array | undefined>()
  const work = new Map<string, 'put' | 'renew' | 'delete'>()
  let isHealthy = true
  let isBusy = false
  let wake = () => {}
  const show = () => metrics?.pending(work.size)
  const add = (key: string, what: 'put' | 'renew' | 'delete') => {
    work.set(key, what)
    show()
    wake()
  }

  const perform = async (key: string, what: 'put' | 'renew' | 'delete'): Promise<void> => {
    const value = kept.get(key)
    if (what === 'delete') return store.delete([key])
    if (value === undefined) return
    if (what === 'renew' && (await store.touch(key, ttlMs))) return
    const bytes = value()
    if (bytes === undefined) return
    await store.put(key, bytes, ttlMs)
  }

  const drain = async (signal: AbortSignal): Promise<void> => {
    let retryMs = firstRetryMs
    for (const [key, what] of work) {
      if (signal.aborted) return
      // Before the await: what changes meanwhile is work again.
      work.delete(key)
      isBusy = true
      try {
        await perform(key, what)
        isHealthy = true
        retryMs = firstRetryMs
        metrics?.done(what, 'ok')
      } catch (error) {
        // Unless it was abandoned meanwhile.
        if (!work.has(key) && (what === 'delete' || kept.has(key))) work.set(key, what)
        if (isHealthy) log.warn({ err: error, pending: work.size }, 'the state store is behind')
        isHealthy = false
        metrics?.done(what, 'failed')
        await clock.sleep(retryMs, signal).catch(() => {})
        retryMs = Math.min(longestRetryMs, retryMs * 2)
      }
      isBusy = false
      metrics?.healthy(isHealthy)
      show()
    }
  }

  return {
    store,
    healthy: () => isHealthy,
    pending: () => work.size,
    keep(key, value) {
      kept.set(key, value)
      add(key, 'put')
    },
    drop(key) {
      if (!kept.delete(key) && work.get(key) !== 'put') return
      if (work.size < mostDeletions) add(key, 'delete')
      else work.delete(key)
    },
    async flush(timeoutMs) {
      const until = clock.monotonic() + timeoutMs
      while ((work.size > 0 || isBusy) && clock.monotonic() < until) await clock.sleep(10)
    },
    abandon() {
      kept.clear()
      work.clear()
      show()
    },
    async run(signal) {
      let renewAt = clock.monotonic() + renewMs
      while (!signal.aborted) {
        await drain(signal)
        const woken = new AbortController()
        wake = () => woken.abort()
        if (work.size > 0) continue
        const left = Math.max(0, renewAt - clock.monotonic())
        // Not AbortSignal.any: the signal lasts as long as the process.
        signal.addEventListener('abort', wake, { once: true })
        if (!signal.aborted) await elapses(clock, left, woken.signal)
        signal.removeEventListener('abort', wake)
        if (clock.monotonic() < renewAt) continue
        renewAt = clock.monotonic() + renewMs
        // Its last word may have been lost, or all of it: FLUSHALL says nothing to anybody.
        for (const key of kept.keys()) if (!work.has(key)) work.set(key, 'renew')
      }
    },
  }
}
