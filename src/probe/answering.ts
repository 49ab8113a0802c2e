/** Waits for the first answer of a pod that has just been resumed. */
import type { V1Container } from '@kubernetes/client-node'
import { type BackoffPolicy, backoffMs } from '../kube/backoff.ts'
import { type Clock, systemClock } from '../kube/clock.ts'
import type { Wire } from '../kube/object.ts'
import { type Handler, parseProbe } from './handler.ts'
import { type Probe, type ProbeTarget, probe as runProbe } from './probe.ts'
import type { ProbeResult } from './result.ts'

export interface Answering {
  /** How each container was checked. `assumed`: it had nothing to probe. */
  readonly containers: readonly { readonly name: string; readonly by: 'probe' | 'port' | 'assumed' }[]
  /** Milliseconds from the call to the last container's answer. */
  readonly ms: number
}

export interface AnsweringOptions {
  readonly signal: AbortSignal
  readonly clock?: Clock | undefined
  readonly probe?: Probe | undefined
  /** Receives each failed attempt, for people; may be called often. */
  readonly onFailure?: ((container: string, message: string) => void) | undefined
}

interface Template {
  readonly containers: readonly Wire<V1Container>[]
}

const between: BackoffPolicy = { initialMs: 5, maxMs: 100, jitter: 0 }
/** Another attempt starts after so long without an answer: the kernel resends a lost SYN only after a second. */
const companyAfterMs = 200
const maxAtOnce = 3

/**
 * Resolves as soon as every container of the template answers. Its readiness probe has to succeed once, regardless of
 * thresholds and delays, as the app was ready when it was saved. Without a probe that the agent can run, its first
 * declared TCP port has to accept a connection. A container with neither is assumed to answer.
 *
 * Use it only for apps that run: the kernel accepts connections for a frozen one.
 * @throws the signal's reason. The caller decides how long to wait; there is no timeout.
 */
export async function waitUntilAnswering(
  target: ProbeTarget,
  template: Template,
  options: AnsweringOptions,
): Promise<Answering> {
  const { clock = systemClock } = options
  const start = clock.monotonic()
  const containers = await Promise.all(
    template.containers.map(async container => {
      const { name } = container
      const question = questionFor(container, target)
      if (question === undefined) return { name, by: 'assumed' as const }
      await untilSuccess(name, question, target, options)
      return { name, by: question.by }
    }),
  )
  options.signal.throwIfAborted()
  return { containers, ms: clock.monotonic() - start }
}

interface Question {
  readonly by: 'probe' | 'port'
  readonly handler: Handler
  readonly timeoutMs: number
}

function questionFor(container: Wire<V1Container>, { run }: ProbeTarget): Question | undefined {
  const parsed = container.readinessProbe && parseProbe(container.readinessProbe, container)
  if (typeof parsed === 'object' && (parsed.handler.type !== 'exec' || run !== undefined))
    return { by: 'probe', handler: parsed.handler, timeoutMs: parsed.timing.timeoutMs }
  const port = container.ports?.find(({ protocol = 'TCP' }) => protocol === 'TCP')
  if (port === undefined) return undefined
  return {
    by: 'port',
    handler: { type: 'tcp', port: port.containerPort },
    timeoutMs: 1000,
  }
}

async function untilSuccess(
  container: string,
  { handler, timeoutMs }: Question,
  target: ProbeTarget,
  { signal, clock = systemClock, probe = runProbe, onFailure }: AnsweringOptions,
): Promise<void> {
  const found = new AbortController()
  const onAbort = () => found.abort(signal.reason)
  signal.addEventListener('abort', onAbort, { once: true })
  if (signal.aborted) onAbort()
  const running = new Set<Promise<ProbeResult>>()
  try {
    for (let failures = 0; ; ) {
      const attempt = probe(handler, target, { timeoutMs, signal: found.signal, clock }).finally(() =>
        running.delete(attempt),
      )
      running.add(attempt)
      const result = await firstOf(running, running.size < maxAtOnce ? companyAfterMs : undefined, {
        signal: found.signal,
        clock,
      })
      if (result === 'silent') continue
      if (result.outcome === 'success') return
      onFailure?.(container, result.message)
      await clock.sleep(backoffMs(failures, between), found.signal)
      failures += 1
    }
  } finally {
    signal.removeEventListener('abort', onAbort)
    found.abort(new Error('answered'))
    await Promise.allSettled(running)
  }
}

async function firstOf(
  running: ReadonlySet<Promise<ProbeResult>>,
  patienceMs: number | undefined,
  { signal, clock }: { readonly signal: AbortSignal; readonly clock: Clock },
): Promise<ProbeResult | 'silent'> {
  if (patienceMs === undefined) return Promise.race(running)
  const over = new AbortController()
  const onAbort = () => over.abort()
  signal.addEventListener('abort', onAbort, { once: true })
  const silence = clock.sleep(patienceMs, over.signal).then(
    () => 'silent' as const,
    () => new Promise<never>(() => {}),
  )
  try {
    return await Promise.race([...running, silence])
  } finally {
    signal.removeEventListener('abort', onAbort)
    over.abort()
  }
}
