import { type Clock, elapses } from '../kube/clock.ts'
import type { Log } from '../kube/log.ts'
import type { StateStoreMetrics } from './metrics.ts'
import type { StateStore } from './state-store.ts'

/**
 * Writes this process' values to the store in the background, as fast as it can. Callers do not wait for it, only the
 * last value of each key counts, and entries that a store has lost are written again. So an outage of the store costs
 * at most one pending entry for each key, however long it lasts.
 */
export interface WriteBehind {
  /** Sets the value of a key. `value` is called for every write; undefined: the value no longer exists. */
  keep(key: string, value: () => Uint8Array | undefined): void
  /** Deletes the key. */
  drop(key: string): void
  /** For reads; loads must be rare and bounded. */
  readonly store: Pick<StateStore, 'get' | 'durable'>
  /** Whether the last operation succeeded; failed operations are retried. */
  healthy(): boolean
  /** Number of keys whose last change is not written yet. */
  pending(): number
  /** Waits until everything is written, for at most this long. */
  flush(timeoutMs: number): Promise<void>
  /** Another process maintains the keys from now on: leaves them as they are. */
  abandon(): void
  run(signal: AbortSignal): Promise<void>
}

/**
 * Lifetime of an entry that is not renewed, ms; so also of an entry whose deletion failed because the store was down.
 */
const ttlMs = 7 * 24 * 3_600_000
/** Interval at which entries are renewed, and written again if the store has lost them, ms. */
const renewMs = 30_000
const firstRetryMs = 200
const longestRetryMs = 10_000
/** Maximum of deletions that wait for a store that is down; further entries are left to expire. */
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
      // Before the await: a change during the operation is new work.
      work.delete(key)
      isBusy = true
      try {
        await perform(key, what)
        isHealthy = true
        retryMs = firstRetryMs
        metrics?.done(what, 'ok')
      } catch (error) {
        // Unless it was abandoned in the meantime.
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
        // The last write of a key, or all keys, may have been lost: FLUSHALL notifies no client.
        for (const key of kept.keys()) if (!work.has(key)) work.set(key, 'renew')
      }
    },
  }
}
