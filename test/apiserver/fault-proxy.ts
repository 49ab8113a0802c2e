/**
 * A proxy in front of a real API server that injects exactly the faults that a test requests. The server behind it is
 * real, so a client's reaction is judged by the state of the world and not by a mock.
 */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import { Agent, type Dispatcher } from 'undici'
import type { Connection } from '../../src/kube/connection.ts'

export interface ProxiedRequest {
  readonly method: string
  /** Path without query: `/api/v1/namespaces/a/pods`. */
  readonly path: string
  readonly query: URLSearchParams
  readonly watch: boolean
}

/** The requests that a fault affects. Default: all. */
export type Match = (request: ProxiedRequest) => boolean

export interface Fault {
  /** Ends the fault. Held data is delivered (delay), held connections are cut (half-open). Idempotent. */
  end(): void
  /** Number of requests or streams that the fault has affected. */
  readonly hits: number
}

export interface FaultProxy {
  /** For clients: plain HTTP, with the credentials of the connection behind it unless a request has its own. */
  readonly connection: Connection
  /** A kubeconfig (JSON is YAML) for other processes. */
  readonly kubeconfig: string
  /** Every request received, in order. */
  readonly requests: readonly ProxiedRequest[]
  /** Answers `count` requests with this status; the server never sees them. */
  status(
    code: number,
    options?: { match?: Match; count?: number; retryAfterSeconds?: number; reason?: string },
  ): Fault
  /** The server executes `count` requests, but the client gets a reset instead of the response. */
  loseResponse(count?: number, match?: Match): Fault
  /** Cuts `count` requests before the server sees them. */
  loseRequest(count?: number, match?: Match): Fault
  /** Calls `act` after the server has answered and before the client gets the response, which waits for `act`. */
  between(act: (request: ProxiedRequest) => void | Promise<void>, match?: Match, count?: number): Fault
  /** Holds back the events of running and new watches; delivers them when the fault ends. */
  delayWatch(match?: Match): Fault
  /** Cuts the running watches with a reset. */
  dropWatch(match?: Match): void
  /**
   * Running streams fall silent; new requests are accepted and never answered. Nothing is closed until the fault ends.
   */
  halfOpen(match?: Match): Fault
  /** Resolves once the server has answered every write, also those of clients that have died meanwhile. */
  written(): Promise<void>
  /** Ends all faults. */
  heal(): void
  close(): Promise<void>
}

interface Rule {
  readonly match: Match
  readonly kind: 'status' | 'loseResponse' | 'loseRequest' | 'between' | 'delay' | 'halfOpen'
  left: number
  hits: number
  ended: boolean
  readonly answer?: (response: ServerResponse) => void
  readonly act?: (request: ProxiedRequest) => void | Promise<void>
  /** Callbacks that release everything that the rule holds, called at its end. */
  readonly held: Set<() => void>
}

interface Stream {
  readonly request: ProxiedRequest
  readonly cut: () => void
}

const all: Match = () => true

export async function startFaultProxy(upstream: Connection): Promise<FaultProxy> {
  const { tls } = await upstream.credentials()
  const agent = new Agent({ connect: { ...tls }, headersTimeout: 0, bodyTimeout: 0 })
  const requests: ProxiedRequest[] = []
  const sockets = new Set<Socket>()
  const streams = new Set<Stream>()
  const writes = new Set<Promise<unknown>>()
  const rules: Rule[] = []

  const end = (rule: Rule) => {
    if (rule.ended) return
    rule.ended = true
    rules.splice(rules.indexOf(rule), 1)
    for (const release of [...rule.held]) release()
    rule.held.clear()
  }

  const add = (
    kind: Rule['kind'],
    match: Match,
    count: number,
    more: Partial<Pick<Rule, 'answer' | 'act'>> = {},
  ): Fault => {
    const rule: Rule = { kind, match, left: count, hits: 0, ended: false, held: new Set(), ...more }
    rules.push(rule)
    return {
      end: () => end(rule),
      get hits() {
        return rule.hits
      },
    }
  }

  /** Takes one use of the first rule of these kinds that matches the request. */
  const take = (request: ProxiedRequest, ...kinds: readonly Rule['kind'][]): Rule | undefined => {
    const rule = rules.find(r => kinds.includes(r.kind) && r.match(request))
    if (!rule) return undefined
    rule.hits += 1
    rule.left -= 1
    if (rule.left <= 0) end(rule)
    return rule
  }

  /** Rules without a limit stay. They are looked up for every chunk, so that running streams notice them. */
  const holding = (request: ProxiedRequest, kind: 'delay' | 'halfOpen') =>
    rules.find(r => r.kind === kind && r.match(request))

  const until = (rule: Rule, signal: AbortSignal) =>
    new Promise<void>(resolve => {
      const release = () => {
        rule.held.delete(release)
        resolve()
      }
      rule.held.add(release)
      signal.addEventListener('abort', release, { once: true })
    })

  /** A server executes a write that it has received, whether its client still lives or not. */
  const forward = async (incoming: IncomingMessage, body: Buffer, signal: AbortSignal) => {
    const { headers } = await upstream.credentials()
    const { host: _host, connection: _connection, 'content-length': _length, ...kept } = incoming.headers
    const method = (incoming.method ?? 'GET') as Dispatcher.HttpMethod
    const answer = agent.request({
      origin: new URL(upstream.server).origin,
      path: incoming.url ?? '/',
      ...{ method, headers: { ...headers, ...kept }, body: body.length > 0 ? body : null },
      ...(method === 'GET' && { signal }),
    })
    if (method !== 'GET') writes.add(answer)
    return answer.finally(() => writes.delete(answer))
  }

  const serve = async (incoming: IncomingMessage, outgoing: ServerResponse) => {
    const url = new URL(incoming.url ?? '/', 'http://proxy')
    const watch = ['true', '1'].includes(url.searchParams.get('watch') ?? '')
    const request = { method: incoming.method ?? 'GET', path: url.pathname, query: url.searchParams, watch }
    requests.push(request)
    const cut = () => incoming.socket.resetAndDestroy()
    const gone = new AbortController()
    outgoing.on('close', () => gone.abort())

    const chunks: Buffer[] = []
    for await (const chunk of incoming) chunks.push(chunk as Buffer)

    const before = take(request, 'status', 'loseRequest')
    if (before?.kind === 'status') return before.answer?.(outgoing)
    if (before) return cut()
    const silent = holding(request, 'halfOpen')
    if (silent) {
      silent.hits += 1
      await until(silent, gone.signal)
      return cut()
    }

    const answer = await forward(incoming, Buffer.concat(chunks), gone.signal)
    const after = take(request, 'loseResponse', 'between')
    if (after?.kind === 'loseResponse') {
      // Only a complete response proves that the server is done.
      await answer.body.arrayBuffer()
      return cut()
    }
    await after?.act?.(request)

    const { 'transfer-encoding': _encoding, connection: _connection, ...headers } = answer.headers
    outgoing.writeHead(answer.statusCode, headers)
    outgoing.flushHeaders()
    const stream = { request, cut }
    if (watch) streams.add(stream)
    outgoing.on('close', () => streams.delete(stream))
    for await (const chunk of answer.body) {
      for (;;) {
        const rule = holding(request, 'halfOpen') ?? (watch ? holding(request, 'delay') : undefined)
        if (!rule) break
        rule.hits += 1
        await until(rule, gone.signal)
        if (rule.kind === 'halfOpen') return cut()
        if (gone.signal.aborted) return
      }
      if (!outgoing.write(chunk))
        await new Promise(resolve => outgoing.once('drain', resolve).once('close', resolve))
    }
    // The end of a stream is an event, too.
    const held = holding(request, 'halfOpen') ?? (watch ? holding(request, 'delay') : undefined)
    if (held) await until(held, gone.signal)
    outgoing.end()
  }

  const server = createServer((incoming, outgoing) => {
    // If the exchange with the server fails in any way, the one with the client ends with a reset.
    serve(incoming, outgoing).catch(() => incoming.socket.resetAndDestroy())
  })
  server.on('connection', (socket: Socket) => {
    sockets.add(socket)
    socket.on('close', () => sockets.delete(socket))
    socket.on('error', () => {})
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`

  return {
    connection: {
      server: url,
      namespace: upstream.namespace,
      proxyUrl: undefined,
      credentials: async () => noCredentials,
      invalidate() {},
    },
    kubeconfig: JSON.stringify({
      apiVersion: 'v1',
      kind: 'Config',
      'current-context': 'proxy',
      clusters: [{ name: 'proxy', cluster: { server: url } }],
      users: [{ name: 'proxy', user: {} }],
      contexts: [{ name: 'proxy', context: { cluster: 'proxy', user: 'proxy' } }],
    }),
    requests,
    status: (code, { match = all, count = 1, retryAfterSeconds, reason } = {}) =>
      add('status', match, count, {
        answer(response) {
          const retry = retryAfterSeconds === undefined ? {} : { 'retry-after': String(retryAfterSeconds) }
          response.writeHead(code, { 'content-type': 'application/json', ...retry })
          response.end(
            JSON.stringify({
              kind: 'Status',
              apiVersion: 'v1',
              status: 'Failure',
              code,
              reason,
              message: 'injected',
            }),
          )
        },
      }),
    loseResponse: (count = 1, match = all) => add('loseResponse', match, count),
    loseRequest: (count = 1, match = all) => add('loseRequest', match, count),
    between: (act, match = all, count = 1) => add('between', match, count, { act }),
    delayWatch: (match = all) => add('delay', match, Number.POSITIVE_INFINITY),
    dropWatch(match = all) {
      for (const { request, cut } of [...streams]) if (match(request)) cut()
    },
    halfOpen: (match = all) => add('halfOpen', match, Number.POSITIVE_INFINITY),
    async written() {
      // Bytes of a client that has died may still lie in its socket.
      await new Promise(resolve => setTimeout(resolve, 100))
      while (writes.size > 0) await Promise.allSettled(writes)
    },
    heal() {
      for (const rule of [...rules]) end(rule)
    },
    async close() {
      for (const rule of [...rules]) end(rule)
      await new Promise<void>(resolve => {
        server.close(() => resolve())
        for (const socket of sockets) socket.destroy()
      })
      await agent.destroy()
    },
  }
}

/** A single object: clients that compare credentials by reference keep their connections. */
const noCredentials = Object.freeze({ headers: {}, tls: {} })

/** Matches by method and by a pattern for the path: `on('POST', /\/pods$/)`. */
export const on =
  (method: string, path: RegExp = /./): Match =>
  request =>
    request.method === method && path.test(request.path)

/** Matches watches of a resource: `watching('pods')`. */
export const watching =
  (plural: string): Match =>
  request =>
    request.watch && request.path.endsWith(`/${plural}`)
