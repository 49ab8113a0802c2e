import type { Api } from '../../src/kube/api.ts'
import { systemClock } from '../../src/kube/clock.ts'
import type { KubeObject } from '../../src/kube/object.ts'
import type { Resource } from '../../src/kube/resources.ts'

/** A change as the watch delivered it. */
export interface Stamped<T> {
  /** Unix ms of its receipt, after its JSON had been parsed. */
  readonly at: number
  readonly type: 'ADDED' | 'MODIFIED' | 'DELETED'
  readonly object: T
}

export interface Expectation<T> {
  /** Names the awaited condition in the error. */
  readonly what: string
  readonly timeoutMs: number
  /** Called after every event. `live` are the objects that exist then, by uid. */
  readonly holds: (live: ReadonlyMap<string, T>, event: Stamped<T>) => boolean
}

/** Records all events of some objects, with the times at which this process received them. */
export interface Recording<T> {
  /** Objects that exist now, by uid. */
  readonly live: ReadonlyMap<string, T>
  /** Events since the last `forget`. */
  readonly events: readonly Stamped<T>[]
  /** Drops the events so far, before a trial. */
  forget(): void
  /**
   * Resolves with the first event from now on after which the condition holds. Call it BEFORE the request that causes
   * it. Rejects after `timeoutMs`, or when the watch breaks: a gap in it would falsify the figure.
   */
  next(expectation: Expectation<T>): Promise<Stamped<T>>
  /** Resolves when no event has come for `ms`. */
  quiet(ms: number): Promise<void>
}

export interface RecordOptions {
  readonly namespace?: string
  readonly labelSelector?: string
  readonly now: () => number
  readonly signal: AbortSignal
}

/**
 * Lists and then watches until the signal fires.
 * @throws KubeError if the list or the first watch fails
 */
export async function record<T extends KubeObject>(
  api: Pick<Api, 'list' | 'watch'>,
  resource: Resource<T>,
  { namespace, labelSelector, now, signal }: RecordOptions,
): Promise<Recording<T>> {
  const live = new Map<string, T>()
  const waiters = new Set<(event: Stamped<T> | undefined, error?: unknown) => void>()
  let events: Stamped<T>[] = []
  let heard = now()
  let broken: { readonly error: unknown } | undefined

  const first = await api.list(resource, { namespace, labelSelector }, { signal })
  for (const object of first.items) live.set(object.metadata.uid, object)

  const follow = async () => {
    let version = first.metadata.resourceVersion
    for (;;) {
      const watch = api.watch(resource, { namespace, labelSelector, resourceVersion: version }, { signal })
      for await (const change of watch) {
        if (change.type === 'BOOKMARK') {
          version = change.resourceVersion
          continue
        }
        const event: Stamped<T> = { at: now(), type: change.type, object: change.object }
        version = change.object.metadata.resourceVersion
        heard = event.at
        if (event.type === 'DELETED') live.delete(event.object.metadata.uid)
        else live.set(event.object.metadata.uid, event.object)
        events.push(event)
        for (const waiter of [...waiters]) waiter(event)
      }
      // The server ended the watch at its time limit; it resumes where it stopped, without loss.
    }
  }
  follow().catch((error: unknown) => {
    broken = { error }
    for (const waiter of [...waiters]) waiter(undefined, error)
  })

  return {
    live,
    get events() {
      return events
    },
    forget() {
      events = []
    },
    next({ what, timeoutMs, holds }) {
      const expected = new Promise<Stamped<T>>((resolve, reject) => {
        if (broken !== undefined) {
          reject(new Error(`the watch on ${resource.plural} broke`, { cause: broken.error }))
          return
        }
        const settle = () => {
          clearTimeout(timer)
          waiters.delete(waiter)
        }
        const waiter = (event: Stamped<T> | undefined, error?: unknown) => {
          if (event === undefined) {
            settle()
            reject(new Error(`the watch on ${resource.plural} broke`, { cause: error }))
          } else if (holds(live, event)) {
            settle()
            resolve(event)
          }
        }
        const timer = setTimeout(() => {
          settle()
          reject(new Error(`not within ${timeoutMs / 1000} s: ${what}`))
        }, timeoutMs)
        waiters.add(waiter)
      })
      // A caller whose request fails never awaits this promise, so its rejection must not count as unhandled.
      expected.catch(() => {})
      return expected
    },
    async quiet(ms) {
      for (;;) {
        const left = heard + ms - now()
        if (left <= 0) return
        await systemClock.sleep(left, signal)
      }
    },
  }
}
