import type { Api } from './api.ts'
import type { Clock } from './clock.ts'
import type { Log } from './log.ts'
import { keepAliveMs } from './transport.ts'

/** A round on a busy machine may begin so much later, ms. */
const marginMs = 5_000

export interface KeepWarmOptions {
  readonly api: Pick<Api, 'request'>
  /** How many connections to hold open. */
  readonly connections: number
  readonly clock: Clock
  readonly log: Log
  /** Milliseconds between two rounds; below the time after which idle connections are closed. */
  readonly everyMs?: number | undefined
}

/**
 * Keeps a client's connections open through quiet times, until the signal fires. Otherwise a burst after an hour of
 * silence would begin with a TLS handshake for each connection: tens of milliseconds on a busy machine, just when
 * something has failed.
 */
export async function keepWarm(options: KeepWarmOptions, signal: AbortSignal): Promise<void> {
  const { api, connections, clock, log, everyMs = keepAliveMs - marginMs } = options
  while (!signal.aborted) {
    // In parallel, or all requests would use one connection. Any answer will do, even a refusal.
    const round = await Promise.allSettled(
      Array.from({ length: connections }, () => api.request('GET', '/version', { signal, timeoutMs: 5_000 })),
    )
    const failed = round.filter(({ status }) => status === 'rejected').length
    if (failed > 0 && !signal.aborted) log.debug({ failed, connections }, 'cannot keep connections warm')
    await clock.sleep(everyMs, signal).catch(() => {})
  }
}
