/** Layers around the connections: measuring, renewing credentials, retrying. */

import { unlessAborted } from './abort.ts'
import { backoffMs } from './backoff.ts'
import type { Clock } from './clock.ts'
import type { Connection } from './connection.ts'
import type { Credentials } from './credentials.ts'
import { isKubeError, KubeError } from './errors.ts'
import type { Log } from './log.ts'
import type { ApiMetrics } from './metrics-hooks.ts'
import type { Random } from './random.ts'
import type { Exchange, HttpAnswer, HttpRequest } from './transport.ts'

/** Layer: reports each try. */
export function measured<A extends HttpAnswer>(
  exchange: Exchange<A>,
  {
    clock,
    host,
    metrics,
  }: { readonly clock: Clock; readonly host: string; readonly metrics: ApiMetrics | undefined },
): Exchange<A> {
  const report = metrics?.request?.bind(metrics)
  if (!report) return exchange
  return async request => {
    const { verb, method, resource } = request
    const started = clock.monotonic()
    const observe = (code: string) =>
      report({ verb, method, host, resource, code, seconds: (clock.monotonic() - started) / 1000 })
    try {
      const answer = await exchange(request)
      observe(String(answer.status))
      return answer
    } catch (error) {
      observe('<error>')
      throw error
    }
  }
}

/**
 * Layer: adds the credentials. A 401 may only mean that a token or certificate has been replaced: the layer reloads
 * them and sends the request, which was not executed, once more.
 */
export function authorised<A extends HttpAnswer>(
  exchange: Exchange<A>,
  connection: Pick<Connection, 'credentials' | 'invalidate'>,
): Exchange<A, HttpRequest> {
  return async request => {
    const credentials = await credentialsFor(request, connection)
    try {
      return await exchange({ ...request, credentials })
    } catch (error) {
      if (!isKubeError(error, 'Unauthorized')) throw error
      connection.invalidate(credentials)
      return exchange({ ...request, credentials: await credentialsFor(request, connection) })
    }
  }
}

async function credentialsFor(
  request: HttpRequest,
  connection: Pick<Connection, 'credentials'>,
): Promise<Credentials> {
  try {
    return await unlessAborted(connection.credentials(), request.signal)
  } catch (cause) {
    // An aborted wait is not a verdict about credentials; the signal's reason explains it.
    if (request.signal.aborted) throw cause
    const message = cause instanceof Error ? cause.message : String(cause)
    throw new KubeError('Unauthorized', `${request.verb} ${request.subject}: no credentials: ${message}`, {
      cause,
    })
  }
}

const maxTries = 5
const pauses = { initialMs: 100, maxMs: 2_000 }
/** Pause after a 429 without a Retry-After, ms. */
const throttledMs = 1_000

/**
 * Layer: retries requests that may be repeated, a few times, waiting as long as the server asks. The caller's deadline
 * covers all tries. If a pause does not fit, the call ends at once, since the caller has better uses for the time.
 */
export function repeating<A extends HttpAnswer>(
  exchange: Exchange<A, HttpRequest>,
  {
    clock,
    random,
    log,
    metrics,
  }: {
    readonly clock: Clock
    readonly random: Random
    readonly log: Log
    readonly metrics: ApiMetrics | undefined
  },
): (request: HttpRequest, deadline: number) => Promise<A> {
  return async (request, deadline) => {
    for (let attempt = 0; ; attempt++) {
      try {
        return await exchange(request)
      } catch (error) {
        if (!isKubeError(error) || attempt + 1 >= maxTries || !mayRepeat(request, error)) throw error
        const pause = pauseBefore(attempt, error, random)
        if (clock.monotonic() + pause >= deadline) throw error
        metrics?.retry?.({ verb: request.verb, resource: request.resource, code: error.code })
        log.debug({ err: error, attempt, pauseMs: pause }, 'the request will be retried')
        await clock.sleep(pause, request.signal)
      }
    }
  }
}

/** True if sending `request` again after this failure certainly does no harm. */
export function mayRepeat(request: Pick<HttpRequest, 'repeat'>, error: KubeError): boolean {
  switch (error.code) {
    case 'Throttled':
      return request.repeat !== 'never'
    case 'Unavailable':
      return request.repeat === 'always' || (request.repeat === 'refused' && !error.ambiguous)
    case 'Timeout':
      // A 504 from the server. After our own deadline there is no time left for another try anyway.
      return request.repeat === 'always' && error.status !== undefined
    default:
      return false
  }
}

function pauseBefore(attempt: number, error: KubeError, random: Random): number {
  const asked = error.retryAfterMs ?? (error.code === 'Throttled' ? throttledMs : undefined)
  // Up to a tenth more than the server asks, so that clients that were throttled together do not return together.
  return asked === undefined ? backoffMs(attempt, pauses, random) : asked * (1 + random.next() * 0.1)
}
