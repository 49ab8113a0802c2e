/**
 * Events (events.k8s.io/v1) that tell people what happened to an object. They are best effort: recording never waits
 * and never throws, and drops events rather than piling them up. Every dropped event is counted.
 *
 * An equal event (same object, type, reason, action and series) within `windowMs` does not make a new object: the count
 * of its series grows, by at most one PATCH in `seriesIntervalMs`.
 */

import type { Api } from './api-types.ts'
import type { Clock } from './clock.ts'
import { hasCause, isKubeError } from './errors.ts'
import { cut, type EventRecord, eventName, keyOfEvent } from './event-record.ts'
import type { Log } from './log.ts'
import { microTime } from './micro-time.ts'
import { createQueue } from './queue.ts'
import { type Random, systemRandom } from './random.ts'
import { apiVersionOf, events as resource } from './resources.ts'
import { createTokenBuckets } from './token-bucket.ts'

export type RecorderResult = 'created' | 'repeated' | 'dropped_full' | 'dropped_rate' | 'dropped_failed'

export interface RecorderGauges {
  /** Events whose latest state is not yet written. */
  readonly pending: number
}

export interface RecorderMetrics {
  /** event_recorder_events_total */
  event?(result: RecorderResult): void
  /** Called once at creation; `read` may be called at any time after. */
  gauges?(read: () => RecorderGauges): void
}

export interface RecorderOptions {
  readonly api: Pick<Api, 'create' | 'patch'>
  /** `reportingController`: a name, with a domain prefix or without. */
  readonly component: string
  /** `reportingInstance`: this process, e.g. its pod's name. */
  readonly instance: string
  readonly clock: Clock
  readonly log: Log
  readonly random?: Random | undefined
  readonly metrics?: RecorderMetrics | undefined
  /** Awaited before each write: something more urgent may be under way. */
  readonly giveWay?: (() => Promise<void>) | undefined
  /** Unwritten events that are kept; more are dropped. Default 1000. */
  readonly bufferSize?: number | undefined
  /** Milliseconds after a series' last event within which an equal event still belongs to it. Default 6 min. */
  readonly windowMs?: number | undefined
  /** Milliseconds between two writes of one series. Default 5 s. */
  readonly seriesIntervalMs?: number | undefined
  /**
   * Distinguishes series, besides type, reason and action. The note of the first event stands for all. Default: the
   * note.
   */
  readonly seriesOf?: ((event: EventRecord) => string) | undefined
  /**
   * The lane of an event: events of one object and lane share an allowance. Default: one lane for all events of an
   * object.
   */
  readonly laneOf?: ((event: EventRecord) => string) | undefined
  /** New events for one object and lane: `burst` at once, then one per `refillMs`. Default 25 and 10 s. */
  readonly burst?: number | undefined
  readonly refillMs?: number | undefined
}

export interface Recorder {
  /** Queues the event and returns. */
  record(event: EventRecord): void
  /**
   * Writes all pending events without further delay. Resolves when all are written or dropped, or the signal fires.
   * @returns how many are still pending.
   */
  flush(signal?: AbortSignal): Promise<number>
  /** Gives up all pending events, and ends every wait. */
  close(): void
}

/** One event object, created or to be created. */
interface Series {
  readonly event: EventRecord
  readonly firstSeen: string
  name: string
  readonly namespace: string
  /** How often the event happened, and how many of these the server knows (0: the object has not been created). */
  count: number
  written: number
  lastSeen: string
  /** Monotonic milliseconds. */
  seenAt: number
  triedAt: number
}

const requestTimeoutMs = 10_000
/** With the backoff below: gives up after about four minutes. */
const maxTries = 13
const backoff = { initialMs: 100, maxMs: 30_000, jitter: 0.5 }
const workers = 2

export function createRecorder(options: RecorderOptions): Recorder {
  const { api, component, instance, clock, log, metrics, random = systemRandom } = options
  const { bufferSize = 1000, windowMs = 360_000, seriesIntervalMs = 5_000 } = options
  const { seriesOf = ({ note }) => note, laneOf = () => '' } = options
  const allow = createTokenBuckets(clock, options.burst ?? 25, options.refillMs ?? 10_000)

  /** In order of `seenAt`, so that series past their window come first. */
  const known = new Map<string, Series>()
  const queue = createQueue({ clock, name: 'events', backoff, random })
  let pending = 0
  let flushers: (() => void)[] = []

  const settled = () => {
    pending--
    if (pending > 0) return
    for (const resolve of flushers) resolve()
    flushers = []
  }

  const drop = (key: string) => {
    known.delete(key)
    queue.forget(key)
    settled()
  }

  const expire = (now: number) => {
    for (const [key, { seenAt, count, written }] of known) {
      if (now - seenAt <= windowMs) return
      if (count === written) known.delete(key)
    }
  }

  const send = async (series: Series) => {
    if (options.giveWay !== undefined && flushers.length === 0) await options.giveWay()
    const { event, count, lastSeen, firstSeen, namespace } = series
    const report = count > 1 ? { series: { count, lastObservedTime: lastSeen } } : {}
    if (series.written > 0) {
      await api.patch(
        resource,
        { namespace, name: series.name },
        { type: 'merge', body: report },
        { timeoutMs: requestTimeoutMs },
      )
    } else {
      const body = {
        apiVersion: apiVersionOf(resource),
        kind: resource.kind,
        metadata: { namespace, name: series.name },
        eventTime: firstSeen,
        reportingController: component,
        reportingInstance: cut(instance, 128),
        type: event.type,
        reason: cut(event.reason, 128),
        action: cut(event.action, 128),
        note: cut(event.note, 1024),
        regarding: event.regarding,
        ...(event.related && { related: event.related }),
        ...report,
      }
      await api.create(resource, body, { namespace, timeoutMs: requestTimeoutMs })
    }
    series.written = count
  }

  const write = async (key: string) => {
    const series = known.get(key)
    if (!series || series.count === series.written) return
    const isNew = series.written === 0
    series.triedAt = clock.monotonic()
    try {
      await send(series)
    } catch (error) {
      if (isNew && isKubeError(error, 'AlreadyExists')) {
        // An earlier try was executed after all; names are random, so the object is ours. Its count is unknown.
        series.written = 1
      } else if (!isNew && isKubeError(error, 'NotFound')) {
        // The object has expired on the server (by default after an hour): the series continues in a new object.
        series.name = eventName(series.event.regarding.name, random)
        series.written = 0
        queue.add(key)
        return
      } else if (isTransient(error) && queue.failures(key) < maxTries) {
        const retryInMs = queue.addRateLimited(key, {
          atLeastMs: isKubeError(error) ? (error.retryAfterMs ?? 0) : 0,
        })
        log.debug({ err: error, retryInMs, reason: series.event.reason }, 'event not written yet')
        return
      } else {
        metrics?.event?.('dropped_failed')
        // Nothing can be created in a terminating namespace, so this is not worth a warning.
        const write = hasCause(error, 'NamespaceTerminating') ? log.debug : log.warn
        write.call(log, { err: error, event: series.event }, 'event dropped')
        drop(key)
        return
      }
    }
    queue.forget(key)
    if (isNew) metrics?.event?.('created')
    // The event may have happened again while the request was in flight.
    if (series.count === series.written) settled()
    else queue.add(key, { afterMs: flushers.length > 0 ? 0 : seriesIntervalMs })
  }

  const work = async () => {
    for (let item = await queue.take(); item; item = await queue.take()) {
      await write(item.key)
      queue.done(item.key)
    }
  }
  for (let n = 0; n < workers; n++) void work()

  metrics?.gauges?.(() => ({ pending }))

  return {
    record(event) {
      const now = clock.monotonic()
      expire(now)
      const key = keyOfEvent(event, seriesOf(event))
      const series = known.get(key)
      const stamp = microTime(clock.now())
      if (series && (series.count > series.written || now - series.seenAt <= windowMs)) {
        if (series.count === series.written) pending++
        series.count++
        series.lastSeen = stamp
        series.seenAt = now
        known.delete(key)
        known.set(key, series)
        metrics?.event?.('repeated')
        queue.add(key, { afterMs: series.written === 0 ? 0 : series.triedAt + seriesIntervalMs - now })
        return
      }
      const { regarding } = event
      const object = regarding.uid ?? `${regarding.kind}/${regarding.namespace}/${regarding.name}`
      if (!allow(`${object} ${laneOf(event)}`)) {
        metrics?.event?.('dropped_rate')
        return
      }
      if (pending >= bufferSize) {
        metrics?.event?.('dropped_full')
        return
      }
      pending++
      known.delete(key)
      known.set(key, {
        event,
        firstSeen: stamp,
        name: eventName(regarding.name, random),
        namespace: regarding.namespace ?? 'default',
        count: 1,
        written: 0,
        lastSeen: stamp,
        seenAt: now,
        triedAt: now,
      })
      queue.add(key)
    },

    async flush(signal) {
      for (const [key, { count, written }] of known) if (count > written) queue.add(key)
      if (pending === 0 || signal?.aborted) return pending
      await new Promise<void>(resolve => {
        const end = () => {
          signal?.removeEventListener('abort', end)
          resolve()
        }
        signal?.addEventListener('abort', end, { once: true })
        flushers.push(end)
      })
      return pending
    },
    close() {
      queue.shutdown()
      for (const resolve of flushers) resolve()
      flushers = []
    },
  }
}

function isTransient(error: unknown): boolean {
  return isKubeError(error, 'Throttled', 'Unavailable', 'Timeout', 'Conflict', 'Unauthorized', 'Unknown')
}
