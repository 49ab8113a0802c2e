/** Probes the readiness and liveness of one container until it is cancelled. */
import { unlessAborted } from '../kube/abort.ts'
import type { Clock } from '../kube/clock.ts'
import type { ParsedProbe } from './handler.ts'
import { type Probe, type ProbeTarget, probe as runProbe } from './probe.ts'

export type ProbeKind = 'readiness' | 'liveness'

export type ProberEvent =
  /** Readiness changed. */
  | { readonly type: 'ready' }
  | { readonly type: 'notReady'; readonly message: string }
  /** Liveness failed as many times in a row as its threshold. Reported once; liveness is not probed any more. */
  | { readonly type: 'lost'; readonly message: string }
  /** The agent cannot run probes of this kind, so nothing will be known. */
  | { readonly type: 'unsupported'; readonly kind: ProbeKind; readonly message: string }

export interface ProberOptions {
  readonly readiness?: ParsedProbe | undefined
  readonly liveness?: ParsedProbe | undefined
  /** True if the container was ready before the start, for which there is no event. Default false. */
  readonly readyAtStart?: boolean | undefined
  readonly target: ProbeTarget
  readonly clock: Clock
  readonly onEvent: (event: ProberEvent) => void
  readonly probe?: Probe | undefined
}

export interface Prober {
  /**
   * Probes until the signal fires, or until there is nothing left to probe. The initial delays begin here.
   * @throws whatever `onEvent` throws
   */
  run(signal: AbortSignal): Promise<void>
  /**
   * Suspends probing until the returned function is called, and discards the result of a probe that is running: the app
   * is stopped on purpose, for a checkpoint. Several callers may suspend it at once.
   */
  suspend(): () => void
}

export function createProber(options: ProberOptions): Prober {
  const { readiness, liveness, readyAtStart = false, target, clock, onEvent, probe = runProbe } = options
  const holders = new Set<symbol>()
  let suspensions = 0
  let resumed = Promise.withResolvers<void>()

  /** Runs a probe at its times and counts each valid result, until `count` returns `enough`. */
  const every = async (
    kind: ProbeKind,
    { handler, timing }: ParsedProbe,
    count: (problem: string | undefined) => 'more' | 'enough',
    signal: AbortSignal,
  ): Promise<void> => {
    await clock.sleep(timing.initialDelayMs, signal)
    let due = clock.monotonic()
    for (;;) {
      while (holders.size > 0) {
        await unlessAborted(resumed.promise, signal)
        due = clock.monotonic()
      }
      const before = suspensions
      const result = await probe(handler, target, { timeoutMs: timing.timeoutMs, signal, clock })
      if (result.outcome === 'unsupported') {
        onEvent({ type: 'unsupported', kind, message: result.message })
        return
      }
      // The app was stopped meanwhile, so the result does not count against it, and the next probe follows at once.
      if (before !== suspensions) continue
      if (count(result.outcome === 'success' ? undefined : result.message) === 'enough') return
      // Like a ticker: a probe that takes longer than the period skips the missed times.
      const now = clock.monotonic()
      due += timing.periodMs * (Math.floor((now - due) / timing.periodMs) + 1)
      await clock.sleep(due - now, signal)
    }
  }

  const watchReadiness = (parsed: ParsedProbe, signal: AbortSignal) => {
    let ready = readyAtStart
    const settled = inARow(parsed.timing)
    const count = (problem: string | undefined) => {
      if (settled(problem === undefined) && ready !== (problem === undefined)) {
        ready = problem === undefined
        onEvent(problem === undefined ? { type: 'ready' } : { type: 'notReady', message: problem })
      }
      return 'more' as const
    }
    return every('readiness', parsed, count, signal)
  }

  const watchLiveness = (parsed: ParsedProbe, signal: AbortSignal) => {
    const settled = inARow(parsed.timing)
    const count = (problem: string | undefined) => {
      if (!settled(problem === undefined) || problem === undefined) return 'more' as const
      onEvent({ type: 'lost', message: problem })
      return 'enough' as const
    }
    return every('liveness', parsed, count, signal)
  }

  return {
    async run(signal) {
      // If one fails (onEvent threw), the other ends, too.
      const over = new AbortController()
      const onAbort = () => over.abort(signal.reason)
      signal.addEventListener('abort', onAbort, { once: true })
      if (signal.aborted) onAbort()
      try {
        await Promise.all([
          readiness && watchReadiness(readiness, over.signal),
          liveness && watchLiveness(liveness, over.signal),
        ])
      } catch (error) {
        if (!signal.aborted) throw error
      } finally {
        signal.removeEventListener('abort', onAbort)
        over.abort()
      }
    },
    suspend() {
      const holder = Symbol('suspension')
      if (holders.size === 0) resumed = Promise.withResolvers<void>()
      holders.add(holder)
      suspensions += 1
      return () => {
        if (holders.delete(holder) && holders.size === 0) resumed.resolve()
      }
    },
  }
}

/** Returns a function that tells whether a result completes the required number of equal results in a row. */
function inARow(timing: ParsedProbe['timing']): (good: boolean) => boolean {
  let last: boolean | undefined
  let run = 0
  return good => {
    run = good === last ? run + 1 : 1
    last = good
    return run >= (good ? timing.successThreshold : timing.failureThreshold)
  }
}
