/**
 * The work queue of a controller: a set of keys, each with a priority and perhaps a delay.
 *
 * - A key is in it at most once. Adding it again keeps the higher priority and the shorter delay.
 * - A key in work is never handed out a second time. If it is added meanwhile, it runs again after `done`: the pass may
 *   have read a state older than the event that added it.
 * - Higher priorities first; first come, first served within a priority.
 *
 * A ready key is handed to a waiting worker in the same turn of the event loop: no timer, no polling.
 */
import { type BackoffPolicy, backoffMs } from './backoff.ts'
import type { Clock } from './clock.ts'
import { createDelayed, type DelayedItem } from './delayed.ts'
import { createHeap } from './heap.ts'
import type { Random } from './random.ts'
import { createTakers } from './takers.ts'

/** Priority of keys without urgency: the initial list, resyncs. */
export const lowPriority = -100

/** 5 ms, 10 ms, 20 ms ... 1000 s for consecutive failures of a key; no jitter, as keys fail independently. */
export const defaultQueueBackoff: BackoffPolicy = Object.freeze({
  initialMs: 5,
  maxMs: 1_000_000,
  jitter: 0,
})

export interface AddOptions {
  /** Higher first. Default 0. */
  readonly priority?: number | undefined
  /** Milliseconds until the key may be taken. Default 0. */
  readonly afterMs?: number | undefined
}

export interface QueueItem {
  readonly key: string
  readonly priority: number
}

/** Values that are read at each scrape or health check. */
export interface QueueGauges {
  /** Keys that could be worked on (including those whose last pass still runs), by priority. */
  readonly depth: ReadonlyMap<number, number>
  /** For each key in work: seconds since it was taken. */
  readonly runningSeconds: readonly number[]
}

export interface QueueMetrics {
  /** workqueue_adds_total: a key became ready. */
  added?(queue: string): void
  /** workqueue_queue_duration_seconds: from ready to taken. */
  taken?(queue: string, waitedSeconds: number): void
  /** workqueue_work_duration_seconds: from taken to done. */
  done?(queue: string, workedSeconds: number): void
  /** workqueue_retries_total: a key was added with a delay. */
  retried?(queue: string): void
  /** Called once at creation; `read` may be called at any time after. */
  gauges?(queue: string, read: () => QueueGauges): void
}

export interface QueueOptions {
  readonly clock: Clock
  /** Names the queue in metrics: by custom the controller's name. */
  readonly name: string
  readonly metrics?: QueueMetrics | undefined
  /** Default `defaultQueueBackoff`. */
  readonly backoff?: BackoffPolicy | undefined
  /** Needed when the backoff has jitter. */
  readonly random?: Random | undefined
}

export interface Queue {
  /** Ignored after `shutdown`. */
  add(key: string, options?: AddOptions): void
  /**
   * Adds the key with the delay for its consecutive failures, and counts one more failure. `atLeastMs` lengthens that
   * delay (a server's Retry-After).
   * @returns the delay in milliseconds.
   */
  addRateLimited(
    key: string,
    options?: { readonly priority?: number | undefined; readonly atLeastMs?: number | undefined },
  ): number
  /** Forgets the failures of a key: its next delay is the shortest again. */
  forget(key: string): void
  /** Consecutive failures of the key. */
  failures(key: string): number
  /**
   * Waits for a key and takes it: the caller must call `done`.
   * @param atLeast only keys of this priority or a higher one. Such takers are served before the others.
   * @returns undefined when the signal fires or the queue is shut down; the keys in it stay.
   */
  take(signal?: AbortSignal, atLeast?: number): Promise<QueueItem | undefined>
  /** The priority with which a key in work was added again and could run now; undefined: it was not added. */
  pressing(key: string): number | undefined
  /** Ends the work on a taken key. @throws Error when the key was not taken. */
  done(key: string): void
  /** How many keys could be worked on now, including those whose last pass still runs. */
  depth(): number
  gauges(): QueueGauges
  /** Stops accepting and handing out keys. */
  shutdown(): void
  /** Shuts down and waits for the keys in work. @returns false when the signal fired before they were done. */
  drain(signal?: AbortSignal): Promise<boolean>
}

interface Entry extends DelayedItem {
  readonly key: string
  priority: number
  /** `waiting` for its time; `ready`; `blocked`: ready, but its last pass still runs. */
  state: 'waiting' | 'ready' | 'blocked'
  /** Monotonic milliseconds: when a waiting entry becomes ready; since when any other entry is ready. */
  at: number
}

export function createQueue({
  clock,
  name,
  metrics,
  backoff = defaultQueueBackoff,
  random,
}: QueueOptions): Queue {
  const entries = new Map<string, Entry>()
  const ready = createHeap<Entry>((a, b) =>
    a.priority === b.priority ? a.order < b.order : a.priority > b.priority,
  )
  /** Keys in work, with the monotonic time at which they were taken. */
  const working = new Map<string, number>()
  const failed = new Map<string, number>()
  const takers = createTakers<QueueItem>()
  let idle: (() => void)[] = []
  let arrivals = 0
  let closed = false

  const handOut = (entry: Entry): QueueItem => {
    const now = clock.monotonic()
    entries.delete(entry.key)
    working.set(entry.key, now)
    metrics?.taken?.(name, (now - entry.at) / 1000)
    return { key: entry.key, priority: entry.priority }
  }

  const serve = () => {
    for (let next = ready.peek(); next; next = ready.peek()) {
      const give = takers.next(next.priority)
      if (!give) return
      ready.remove(next)
      give(handOut(next))
    }
  }

  const makeReady = (entry: Entry, now: number) => {
    entry.at = now
    entry.order = arrivals++
    metrics?.added?.(name)
    if (working.has(entry.key)) {
      entry.state = 'blocked'
    } else {
      entry.state = 'ready'
      ready.push(entry)
    }
  }

  const waiting = createDelayed<Entry>(clock, (due, now) => {
    for (const entry of due) makeReady(entry, now)
    // Only after all due entries are in the heap: their priorities decide, not the times at which they became due.
    serve()
  })

  const add = (key: string, { priority = 0, afterMs = 0 }: AddOptions = {}) => {
    if (closed) return
    if (afterMs > 0) metrics?.retried?.(name)
    const now = clock.monotonic()
    const at = now + Math.max(afterMs, 0)
    const known = entries.get(key)
    if (!known) {
      const entry: Entry = { key, priority, state: 'waiting', at, order: arrivals++, place: -1 }
      entries.set(key, entry)
      if (afterMs > 0) {
        waiting.push(entry)
      } else {
        makeReady(entry, now)
        serve()
      }
      return
    }
    if (priority > known.priority) {
      known.priority = priority
      if (known.state === 'ready') {
        ready.moved(known)
        // A taker that waits for keys of this priority may accept it now.
        serve()
      }
    }
    if (known.state !== 'waiting') return
    if (afterMs <= 0) {
      waiting.remove(known)
      makeReady(known, now)
      serve()
    } else if (at < known.at) {
      known.at = at
      waiting.moved(known)
    }
  }

  const gauges = (): QueueGauges => {
    const depth = new Map<number, number>()
    for (const { state, priority } of entries.values())
      if (state !== 'waiting') depth.set(priority, (depth.get(priority) ?? 0) + 1)
    const now = clock.monotonic()
    return { depth, runningSeconds: [...working.values()].map(since => (now - since) / 1000) }
  }

  const shutdown = () => {
    closed = true
    waiting.cancel()
    takers.dismiss()
  }

  metrics?.gauges?.(name, gauges)

  return {
    add,
    addRateLimited(key, { priority, atLeastMs = 0 } = {}) {
      const failures = failed.get(key) ?? 0
      failed.set(key, failures + 1)
      const afterMs = Math.max(backoffMs(failures, backoff, random), atLeastMs)
      add(key, { priority, afterMs })
      return afterMs
    },
    forget(key) {
      failed.delete(key)
    },
    failures: key => failed.get(key) ?? 0,
    take(signal, atLeast = Number.NEGATIVE_INFINITY) {
      if (closed || signal?.aborted) return Promise.resolve(undefined)
      const entry = ready.peek()
      if (entry && entry.priority >= atLeast) {
        ready.remove(entry)
        return Promise.resolve(handOut(entry))
      }
      return takers.wait(atLeast, signal)
    },
    pressing(key) {
      const entry = entries.get(key)
      return entry?.state === 'blocked' ? entry.priority : undefined
    },
    done(key) {
      const since = working.get(key)
      if (since === undefined) throw new Error(`queue ${name}: ${key} is not being processed`)
      working.delete(key)
      metrics?.done?.(name, (clock.monotonic() - since) / 1000)
      const again = entries.get(key)
      if (again?.state === 'blocked') {
        again.state = 'ready'
        ready.push(again)
        serve()
      }
      if (working.size === 0) {
        for (const resolve of idle) resolve()
        idle = []
      }
    },
    depth: () => entries.size - waiting.size,
    gauges,
    shutdown,
    drain(signal) {
      shutdown()
      if (working.size === 0) return Promise.resolve(true)
      if (signal?.aborted) return Promise.resolve(false)
      return new Promise(resolve => {
        const onAbort = () => resolve(false)
        signal?.addEventListener('abort', onAbort, { once: true })
        idle.push(() => {
          signal?.removeEventListener('abort', onAbort)
          resolve(true)
        })
      })
    },
  }
}
