/**
 * The HTTP servers for the kubelet and Prometheus: /healthz (is this process alive? if not, restart it), /readyz (can
 * it work? NOT whether it leads: a warm standby is ready) and /metrics.
 */

import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { monitorEventLoopDelay } from 'node:perf_hooks'
import type { Registry } from 'prom-client'
import type { Clock } from './clock.ts'
import { limitConnections } from './connection-limits.ts'
import { messageOf } from './errors.ts'
import type { Log } from './log.ts'
import type { Queue } from './queue.ts'

/** @returns undefined when all is well, else the problem, for people. A throw or rejection is a failure too. */
export type Check = () => string | undefined | Promise<string | undefined>

export type Checks = Readonly<Record<string, Check>>

export interface HealthServerOptions {
  /** 0: any free port, see `port` of the result. */
  readonly port: number
  /** Default: all addresses. */
  readonly host?: string | undefined
  /** Checks of /healthz. A failure makes the kubelet restart the process. */
  readonly live: Checks
  /** Checks of /readyz. */
  readonly ready: Checks
  readonly clock: Clock
  readonly log: Log
  /** Milliseconds after which a check that does not answer has failed. Default 2 s. */
  readonly checkTimeoutMs?: number | undefined
}

export interface HttpServer {
  readonly port: number
  /** Stops accepting, lets running requests finish, then closes idle connections. */
  close(): Promise<void>
}

/**
 * Serves /healthz and /readyz: 200 or 503, with the names of the checks that fail. `?verbose` lists all of them,
 * `?exclude=NAME` leaves one out, and /healthz/NAME runs a single one, as in controller-runtime and the API server.
 * @throws Error when it cannot listen on the port.
 */
export function createHealthServer(options: HealthServerOptions): Promise<HttpServer> {
  const { port, host, live, ready, clock, log, checkTimeoutMs = 2_000 } = options
  const last = new Map<string, string>()

  const run = async (check: Check): Promise<string | undefined> => {
    const over = new AbortController()
    const late = clock.sleep(checkTimeoutMs, over.signal).then(
      () => `no answer within ${checkTimeoutMs} ms`,
      () => undefined,
    )
    try {
      return await Promise.race([check(), late])
    } catch (error) {
      return messageOf(error)
    } finally {
      over.abort()
    }
  }

  const answer = async (kind: 'healthz' | 'readyz', checks: Checks, url: URL): Promise<Answer> => {
    const [, , only, ...rest] = url.pathname.split('/')
    const excluded = new Set(url.searchParams.getAll('exclude'))
    if (rest.length > 0 || (only !== undefined && only !== '' && !checks[only])) return notFound
    const names = only ? [only] : Object.keys(checks).filter(name => !excluded.has(name))
    const results = await Promise.all(
      names.map(async name => ({ name, problem: await run(checks[name] as Check) })),
    )
    const failed = results.filter(({ problem }) => problem !== undefined)
    const problems = failed.map(({ name, problem }) => `${name}: ${problem}`).join('; ')
    // Probes come every few seconds, so only changes are logged.
    if ((last.get(url.pathname) ?? '') !== problems && !only) {
      if (problems) log.warn({ check: kind, problems }, 'unhealthy')
      else log.info({ check: kind }, 'healthy again')
      last.set(url.pathname, problems)
    }
    const list = results.map(({ name, problem }) =>
      problem === undefined ? `[+]${name} ok\n` : `[-]${name} failed: ${problem}\n`,
    )
    if (failed.length > 0) return { status: 503, body: `${list.join('')}${kind} check failed\n` }
    return {
      status: 200,
      body: url.searchParams.has('verbose') ? `${list.join('')}${kind} check passed\n` : 'ok',
    }
  }

  return serve({ port, host, log }, url => {
    if (/^\/healthz(\/|$)/.test(url.pathname)) return answer('healthz', live, url)
    if (/^\/readyz(\/|$)/.test(url.pathname)) return answer('readyz', ready, url)
    return notFound
  })
}

/**
 * Opens all of these servers, or none: if one fails, the others are closed again. @throws the reason of the failure.
 */
export async function openAll(opening: readonly Promise<HttpServer>[]): Promise<readonly HttpServer[]> {
  const all = await Promise.allSettled(opening)
  const open = all.flatMap(each => (each.status === 'fulfilled' ? [each.value] : []))
  const failed = all.find(({ status }) => status === 'rejected')
  if (failed === undefined) return open
  await Promise.all(open.map(server => server.close()))
  throw (failed as PromiseRejectedResult).reason
}

/** Serves /metrics. @throws Error when it cannot listen on the port. */
export function createMetricsServer(options: {
  readonly port: number
  readonly host?: string | undefined
  readonly registry: Registry
  readonly log: Log
}): Promise<HttpServer> {
  const { registry } = options
  return serve(options, async url => {
    if (url.pathname !== '/metrics') return notFound
    return { status: 200, type: registry.contentType, body: await registry.metrics() }
  })
}

/**
 * Fails when the event loop was blocked for longer than `maxMs` since the last check: the process answers, but too late
 * to keep a lease.
 */
export function eventLoopCheck(maxMs: number): Check & Disposable {
  const delay = monitorEventLoopDelay({ resolution: 20 })
  delay.enable()
  const check = () => {
    const worstMs = delay.max / 1e6
    delay.reset()
    return worstMs > maxMs ? `the event loop was blocked for ${Math.round(worstMs)} ms` : undefined
  }
  return Object.assign(check, { [Symbol.dispose]: () => void delay.disable() })
}

/** Fails when some key has been in work for longer than `maxMs`: its pass hangs. */
export function queueCheck(queue: Pick<Queue, 'gauges'>, maxMs: number): Check {
  return () => {
    const longest = Math.max(0, ...queue.gauges().runningSeconds)
    return longest * 1000 > maxMs ? `a pass has been running for ${Math.round(longest)} s` : undefined
  }
}

/** Caches by name; a function where their set depends on the moment. */
type Caches<Cache> = Readonly<Record<string, Cache>> | (() => Readonly<Record<string, Cache>>)

const entriesOf = <Cache>(caches: Caches<Cache>): [string, Cache][] =>
  Object.entries(typeof caches === 'function' ? caches() : caches)

/** Fails until all of these caches have synced. */
export function syncedCheck(caches: Caches<{ hasSynced(): boolean }>): Check {
  return () => {
    const missing = entriesOf(caches).filter(([, cache]) => !cache.hasSynced())
    return missing.length > 0 ? `not synced yet: ${missing.map(([name]) => name).join(', ')}` : undefined
  }
}

/** Fails while one of these caches has had no news for longer than `maxMs`: its content may be that old. */
export function freshCheck(caches: Caches<{ newsAgeMs(): number }>, maxMs: number): Check {
  return () => {
    const old = entriesOf(caches).filter(([, cache]) => cache.newsAgeMs() > maxMs)
    return old.length > 0 ? `no update for too long: ${old.map(([name]) => name).join(', ')}` : undefined
  }
}

interface Answer {
  readonly status: number
  readonly body: string
  readonly type?: string
}

const notFound: Answer = { status: 404, body: 'not found\n' }

async function serve(
  { port, host, log }: { readonly port: number; readonly host?: string | undefined; readonly log: Log },
  route: (url: URL) => Answer | Promise<Answer>,
): Promise<HttpServer> {
  const respond = async (request: IncomingMessage, response: ServerResponse) => {
    const { status, body, type = 'text/plain; charset=utf-8' } = await decide(request)
    const headers = {
      'content-type': type,
      'content-length': Buffer.byteLength(body),
      'cache-control': 'no-store',
    }
    response.writeHead(status, headers).end(request.method === 'HEAD' ? undefined : body)
  }
  const decide = async (request: IncomingMessage): Promise<Answer> => {
    if (request.method !== 'GET' && request.method !== 'HEAD') return { status: 405, body: 'GET only\n' }
    const url = URL.parse(request.url ?? '/', 'http://local')
    if (!url) return notFound
    try {
      return await route(url)
    } catch (error) {
      log.error({ err: error, url: url.pathname }, 'cannot answer')
      return { status: 500, body: 'internal error\n' }
    }
  }
  const server = createServer((request, response) => void respond(request, response))
  // Probes are tiny: a client that is slower than this only occupies a socket.
  server.headersTimeout = 10_000
  server.requestTimeout = 10_000
  limitConnections(server, { forAll: 64, forEach: 16 })
  await listen(server, port, host)
  return {
    port: (server.address() as AddressInfo).port,
    close: () =>
      new Promise((resolve, reject) => {
        server.close(error => (error ? reject(error) : resolve()))
        server.closeIdleConnections()
      }),
  }
}

function listen(server: Server, port: number, host: string | undefined): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', reject)
    server.listen({ port, ...(host === undefined ? {} : { host }) }, () => {
      server.off('error', reject)
      resolve()
    })
  })
}
