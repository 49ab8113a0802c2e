/** The bounded queue between the work and a collector that may hang, refuse or be slow. */
import type { Clock } from '../kube/clock.ts'
import { messageOf } from '../kube/errors.ts'
import type { Log } from '../kube/log.ts'
import type { DropReason, TraceMetrics } from './metrics.ts'
import type { Span, TraceSink } from './span.ts'

export interface TraceQueue {
  readonly sink: TraceSink
  /** Sends until the signal fires, and then what waits, for a bounded time; drops the rest. */
  run(signal: AbortSignal): Promise<void>
}

/** The collector's answer to a batch. `unreachable`: another try may succeed. */
export type Sent =
  | { readonly type: 'sent' }
  | { readonly type: 'rejected' | 'unreachable'; readonly why: string }

export interface TraceQueueOptions {
  /** Sends a batch. It may hang, until the signal fires and longer: nothing waits for it then. It may throw. */
  readonly send: (batch: readonly Span[], signal: AbortSignal) => Promise<Sent>
  readonly metrics: TraceMetrics
  readonly clock: Clock
  readonly log: Pick<Log, 'warn' | 'info'>
}

/** About 1 MiB: some hundred failovers. */
export const mostWaiting = 2_048
export const largestBatch = 256
/** Spans of one failover end at about the same time, and travel together, ms. */
export const gatherMs = 1_000
/** Time for one try, ms. */
export const tryMs = 10_000
/** Pauses between the tries to send a batch, ms; after the last one it is dropped. */
export const pausesMs = [2_000, 10_000, 30_000] as const
/** Time to send what waits at the end of the process, ms: well below the grace period of its pod. */
export const flushMs = 2_000

export function createTraceQueue({ send, metrics, clock, log }: TraceQueueOptions): TraceQueue {
  const waiting: Span[] = []
  let wake = () => {}
  const drop = (count: number, reason: DropReason) => {
    if (count > 0) metrics.dropped(count, reason)
  }

  const sendOnce = async (batch: readonly Span[], ms: number, signal: AbortSignal): Promise<Sent> => {
    const over = new AbortController()
    const ended = AbortSignal.any([signal, over.signal])
    const late = clock.sleep(ms, ended).then(
      (): Sent => ({ type: 'unreachable', why: `no answer within ${ms} ms` }),
      (): Sent => ({ type: 'unreachable', why: 'the process ends' }),
    )
    try {
      return await Promise.race([send(batch, ended), late])
    } catch (error) {
      return { type: 'unreachable', why: messageOf(error) }
    } finally {
      over.abort()
    }
  }

  /** Returns false if the signal has ended the tries; the batch is in the queue again. */
  const deliver = async (batch: readonly Span[], signal: AbortSignal): Promise<boolean> => {
    for (const pauseMs of [...pausesMs, undefined]) {
      const result = await sendOnce(batch, tryMs, signal)
      if (result.type === 'sent') {
        metrics.sent(batch.length)
        return true
      }
      if (result.type === 'rejected' || pauseMs === undefined) {
        drop(batch.length, result.type)
        log.warn(
          { why: result.why, spans: batch.length },
          'the collector does not take traces; spans are dropped',
        )
        return true
      }
      if (signal.aborted || !(await slept(clock, pauseMs, signal))) {
        waiting.unshift(...batch)
        return false
      }
    }
    return true
  }

  const work = async (signal: AbortSignal): Promise<void> => {
    while (!signal.aborted) {
      if (waiting.length === 0)
        await newsOr(signal, listener => {
          wake = listener
        })
      if (!(await slept(clock, gatherMs, signal))) return
      if (!(await deliver(waiting.splice(0, largestBatch), signal))) return
    }
  }

  const flush = async (): Promise<void> => {
    const until = clock.monotonic() + flushMs
    const never = new AbortController().signal
    let isTaken = true
    while (isTaken && waiting.length > 0 && clock.monotonic() < until) {
      const batch = waiting.splice(0, largestBatch)
      isTaken = (await sendOnce(batch, until - clock.monotonic(), never)).type === 'sent'
      if (isTaken) metrics.sent(batch.length)
      else drop(batch.length, 'shutdown')
    }
    drop(waiting.splice(0).length, 'shutdown')
  }

  return {
    sink(make) {
      try {
        const spans = make()
        const room = Math.max(mostWaiting - waiting.length, 0)
        waiting.push(...spans.slice(0, room))
        drop(spans.length - Math.min(spans.length, room), 'queue_full')
        wake()
      } catch (error) {
        // The work that the trace is about must not fail with it.
        drop(1, 'invalid')
        log.warn({ err: error }, 'cannot make a trace')
      }
    },
    async run(signal) {
      await work(signal)
      await flush()
    },
  }
}

/** Resolves at the next news, or when the signal fires. */
function newsOr(signal: AbortSignal, listen: (wake: () => void) => void): Promise<void> {
  return new Promise(resolve => {
    const done = () => {
      signal.removeEventListener('abort', done)
      listen(() => {})
      resolve()
    }
    listen(done)
    signal.addEventListener('abort', done, { once: true })
    if (signal.aborted) done()
  })
}

async function slept(clock: Clock, ms: number, signal: AbortSignal): Promise<boolean> {
  try {
    await clock.sleep(ms, signal)
    return true
  } catch {
    return false
  }
}
