/**
 * The loop of a controller: workers take keys from a queue and reconcile the object of each key.
 *
 * A pass never harms another key: its errors are caught and counted, and only its own key backs off. A pass that
 * ignores its signal is abandoned: the worker continues, and the key stays in work, so it can never run twice at once.
 *
 * A controller may be run again after it stopped (leadership lost and won). The keys are in the queue, which outlives
 * the run, and a key that was stopped in the middle of its pass is put back there.
 */
import { type Clock, elapses } from './clock.ts'
import { isKubeError } from './errors.ts'
import type { Log } from './log.ts'
import { refOfKey } from './object.ts'
import { attempt, type Outcome, outcomeOf, PassTimeout, retryAfterMs } from './pass-outcome.ts'
import type { Queue, QueueItem } from './queue.ts'
import type { Random } from './random.ts'
import type { Reconcile } from './reconcile.ts'
import { mustStopNow } from './stop.ts'

/** The label `result` of controller_runtime_reconcile_total. */
export const reconcileResults = ['success', 'requeue_after', 'error'] as const
export type ReconcileResult = (typeof reconcileResults)[number]

export interface ControllerMetrics {
  /** Called once at creation, to show every series as 0 and controller_runtime_max_concurrent_reconciles. */
  controller?(controller: string, workers: number): void
  /** controller_runtime_reconcile_total, controller_runtime_reconcile_time_seconds */
  reconciled?(controller: string, result: ReconcileResult, seconds: number): void
  /** controller_runtime_{reconcile_errors,terminal_reconcile_errors,reconcile_panics,reconcile_timeouts}_total */
  failed?(controller: string, kind: 'error' | 'terminal' | 'panic' | 'timeout'): void
  /** controller_runtime_active_workers */
  active?(controller: string, delta: 1 | -1): void
}

export interface ControllerOptions {
  readonly name: string
  readonly queue: Queue
  readonly reconcile: Reconcile
  /** Concurrent passes, each of another key. Default 1. */
  readonly workers?: number | undefined
  /**
   * Additional workers only for keys of at least this priority: long passes of other keys do not keep these waiting.
   */
  readonly reserved?: { readonly workers: number; readonly priority: number } | undefined
  /** pino's logger, or anything like it; `child` is used if it exists. */
  readonly log: Log & { child?(fields: Record<string, unknown>): Log }
  readonly clock: Clock
  readonly random: Random
  readonly metrics?: ControllerMetrics | undefined
  /** Milliseconds after which a pass's signal fires. Default: none. */
  readonly timeoutMs?: number | undefined
  /** Milliseconds that running passes get to finish when the controller stops. Default 10 s. */
  readonly drainMs?: number | undefined
  /** Milliseconds between a pass's signal and abandoning the pass. Default 5 s. */
  readonly graceMs?: number | undefined
}

export interface Controller {
  /**
   * Works until `stop` fires, then lets running passes finish for `drainMs`. `abort` cuts that short, as does a `stop`
   * whose reason is a `StopNow`. Resolves when every pass has ended or was abandoned. Never rejects.
   */
  run(stop: AbortSignal, abort?: AbortSignal): Promise<void>
}

/** A key that comes back this soon is still the same matter, and keeps its priority. */
const sameMatterMs = 1_000

export function createController(options: ControllerOptions): Controller {
  const { name, queue, reconcile, workers = 1, reserved, clock, random, metrics } = options
  const { timeoutMs, drainMs = 10_000, graceMs = 5_000 } = options
  metrics?.controller?.(name, workers + (reserved?.workers ?? 0))

  /** Applies the outcome. The key is still in work. */
  const conclude = (item: QueueItem, outcome: Outcome, seconds: number, log: Log) => {
    const { key, priority } = item
    const retry = () =>
      queue.addRateLimited(key, {
        priority,
        atLeastMs: 'error' in outcome ? retryAfterMs(outcome.error) : 0,
      })
    const again = (afterMs: number, wanted: number | undefined) => {
      queue.forget(key)
      queue.add(key, { priority: wanted ?? (afterMs < sameMatterMs ? priority : 0), afterMs })
      return afterMs
    }
    switch (outcome.type) {
      case 'success':
        queue.forget(key)
        metrics?.reconciled?.(name, 'success', seconds)
        log.debug({ seconds }, 'reconciled')
        return
      case 'later': {
        const { afterMs, reason } = outcome
        const requeueAfterMs = afterMs === 'backoff' ? retry() : again(afterMs, outcome.priority)
        metrics?.reconciled?.(name, 'requeue_after', seconds)
        log.debug({ seconds, requeueAfterMs, reason }, 'reconciled, and will run again')
        return
      }
      case 'stopped':
        // The effects of the pass are unknown: the next leader starts from the state that it observes.
        queue.add(key, { priority })
        log.info({ seconds }, 'stopped during a pass')
        return
      case 'terminal':
        queue.forget(key)
        metrics?.failed?.(name, 'terminal')
        break
      case 'timeout':
      case 'panic':
        metrics?.failed?.(name, outcome.type)
        break
      case 'error':
        break
    }
    metrics?.failed?.(name, 'error')
    metrics?.reconciled?.(name, 'error', seconds)
    const { error } = outcome
    if (outcome.type === 'terminal') {
      log.error({ seconds, err: error }, 'failed, and a retry cannot help')
      return
    }
    const failures = queue.failures(key) + 1
    const retryInMs = outcome.again ? again(outcome.again.afterMs, outcome.again.priority) : retry()
    const fields = { seconds, err: error, failures: outcome.again ? undefined : failures, retryInMs }
    if (outcome.type === 'panic') log.error(fields, 'failed because of a bug')
    // Another writer was first: normal, and the event of that write is on its way.
    else if (isKubeError(error, 'Conflict')) log.debug(fields, 'conflict')
    else log.warn(fields, outcome.type === 'timeout' ? 'took too long' : 'failed')
  }

  /** Runs one pass. Resolves when it has ended, or when its worker should stop waiting for it. */
  const pass = async (item: QueueItem, cancels: Set<AbortController>, stop: AbortSignal): Promise<void> => {
    const cancel = new AbortController()
    const over = new AbortController()
    const reconcileId = uuid(random)
    const ref = refOfKey(item.key)
    const log = withFields(options.log, { controller: name, ...ref, reconcileID: reconcileId })
    const started = clock.monotonic()
    cancels.add(cancel)
    metrics?.active?.(name, 1)

    const ended = attempt(() =>
      reconcile(item.key, {
        reconcileId,
        log,
        signal: cancel.signal,
        priority: item.priority,
        mustYield: () => stop.aborted || (queue.pressing(item.key) ?? -Infinity) > item.priority,
      }),
    ).then(result => {
      cancels.delete(cancel)
      metrics?.active?.(name, -1)
      const reason: unknown = cancel.signal.aborted ? cancel.signal.reason : undefined
      conclude(item, outcomeOf(result, reason), (clock.monotonic() - started) / 1000, log)
      queue.done(item.key)
      // With an explicit reason: creating the default one, an error with a stack, takes longer than some passes.
      over.abort('over')
    })

    if (timeoutMs !== undefined)
      void elapses(clock, timeoutMs, over.signal).then(
        late => late && cancel.abort(new PassTimeout(`longer than ${timeoutMs} ms`)),
      )
    const leftBehind = new Promise<void>(resolve => {
      const wait = async () => {
        if (await elapses(clock, graceMs, over.signal))
          log.error({ graceMs }, 'a pass still runs after its timeout; it is abandoned')
        resolve()
      }
      cancel.signal.addEventListener('abort', () => void wait(), { once: true })
    })
    await Promise.race([ended, leftBehind])
  }

  return {
    async run(stop, abort) {
      const cancels = new Set<AbortController>()
      const finished = new AbortController()
      const cancelAll = (reason: unknown) => {
        for (const cancel of cancels) cancel.abort(reason)
      }

      const worker = async (atLeast?: number) => {
        let breath = clock.monotonic()
        for (;;) {
          const item = await queue.take(stop, atLeast)
          if (!item) return
          if (stop.aborted) {
            // The queue handed the key out in the same turn in which `stop` fired.
            queue.add(item.key, { priority: item.priority })
            queue.done(item.key)
            return
          }
          await pass(item, cancels, stop)
          // Passes that find nothing to do never wait. Without this, a long queue of them would block all I/O.
          if (clock.monotonic() - breath > 10) {
            await new Promise(resolve => setImmediate(resolve))
            breath = clock.monotonic()
          }
        }
      }

      const drain = async () => {
        await fired(stop, finished.signal)
        if (finished.signal.aborted) return
        if (mustStopNow(stop.reason) || abort?.aborted) return cancelAll(stop.reason)
        if (cancels.size > 0) options.log.info({ controller: name, passes: cancels.size }, 'draining')
        if (await elapses(clock, drainMs, finished.signal)) cancelAll(stop.reason)
      }
      const onAbort = () => cancelAll(abort?.reason)
      abort?.addEventListener('abort', onAbort, { once: true })

      const draining = drain()
      await Promise.all([
        ...Array.from({ length: reserved?.workers ?? 0 }, () => worker(reserved?.priority)),
        ...Array.from({ length: workers }, () => worker()),
      ])
      finished.abort()
      abort?.removeEventListener('abort', onAbort)
      await draining
    },
  }
}

/** Resolves when `signal` has fired, or `end` has. */
function fired(signal: AbortSignal, end: AbortSignal): Promise<void> {
  if (signal.aborted || end.aborted) return Promise.resolve()
  return new Promise(resolve => {
    const onAbort = () => {
      signal.removeEventListener('abort', onAbort)
      end.removeEventListener('abort', onAbort)
      resolve()
    }
    signal.addEventListener('abort', onAbort)
    end.addEventListener('abort', onAbort)
  })
}

function withFields(log: ControllerOptions['log'], fields: Readonly<Record<string, unknown>>): Log {
  if (log.child) return log.child(fields)
  return {
    debug: (more, message) => log.debug({ ...fields, ...more }, message),
    info: (more, message) => log.info({ ...fields, ...more }, message),
    warn: (more, message) => log.warn({ ...fields, ...more }, message),
    error: (more, message) => log.error({ ...fields, ...more }, message),
  }
}

/** A version 4 UUID. */
function uuid(random: Random): string {
  const bytes = random.bytes(16)
  bytes[6] = ((bytes[6] ?? 0) & 0x0f) | 0x40
  bytes[8] = ((bytes[8] ?? 0) & 0x3f) | 0x80
  const hex = Buffer.from(bytes).toString('hex')
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20)}`
}
