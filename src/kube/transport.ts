/**
 * HTTP to one API server: pooled connections, and around them small layers that each do one thing.
 *
 *   repeating( authorised( checked( measured( pool ) ) ) )
 *
 * A layer is a function from an exchange to an exchange, so each can be tested and left out by itself.
 */
import { Agent, type Dispatcher, ProxyAgent, errors as undiciErrors } from 'undici'
import type { Connection } from './connection.ts'
import type { Credentials, TlsMaterial } from './credentials.ts'
import { codeOf, errorFromStatus, KubeError, type Status } from './errors.ts'

export interface HttpRequest {
  /** The API server's verb, for metrics and messages: get, list, watch, create, update, patch, delete, raw. */
  readonly verb: string
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'
  /** Subject for metrics: `plural.group` or a path. */
  readonly resource: string
  /** Subject for people: `pods default/web`. */
  readonly subject: string
  /** Path and query. */
  readonly path: string
  readonly body?: string | undefined
  readonly contentType?: string | undefined
  /**
   * When the request may be sent again: `always` (reads and idempotent writes), `refused` (only if the server certainly
   * has not executed it), `never`.
   */
  readonly repeat: 'always' | 'refused' | 'never'
  /** Called right before each try. If it throws, the request ends with that error, and this try is not sent. */
  readonly permit?: (() => void) | undefined
  readonly signal: AbortSignal
}

/** A request that is about to be sent, with its current credentials. */
export interface AuthorisedRequest extends HttpRequest {
  readonly credentials: Credentials
}

export interface HttpAnswer {
  readonly status: number
  readonly headers: Readonly<Record<string, string | string[] | undefined>>
}
/** An answer with its whole body. */
export interface TextAnswer extends HttpAnswer {
  readonly text: string
}
/** An answer whose body is still arriving. */
export interface StreamAnswer extends HttpAnswer {
  readonly body: AsyncIterable<Buffer> & { destroy(): void }
}

export type Exchange<A extends HttpAnswer, R extends HttpRequest = AuthorisedRequest> = (
  request: R,
) => Promise<A>

export interface Pool {
  readonly unary: Exchange<TextAnswer>
  /** Throws when the answer is silent for `idleTimeoutMs`, as for any other failure of the connection. */
  readonly stream: (idleTimeoutMs: number) => Exchange<StreamAnswer>
  readonly host: string
  destroy(): Promise<void>
}

export interface PoolOptions {
  readonly connection: Pick<Connection, 'server' | 'proxyUrl'>
  readonly userAgent: string
  /** Connections for requests. */
  readonly connections: number
}

/** Larger answers are refused. A paged list stays far below. */
const maxAnswerBytes = 256 * 1024 * 1024
/** A status body is a few hundred bytes. No more than this is read of a broken proxy's error page. */
const maxErrorBytes = 1024 * 1024
const connectTimeoutMs = 10_000
/**
 * Below the API server's own 90 s and the minute of usual load balancers, so that the client closes idle connections and no
 * request runs into a close by the other end.
 */
export const keepAliveMs = 45_000

interface Agents {
  readonly tls: TlsMaterial
  readonly requests: Dispatcher
  readonly watches: Dispatcher
}

/** The connections. Each watch gets its own: it must neither wait for requests nor make them wait. */
export function createPool({ connection, userAgent, connections }: PoolOptions): Pool {
  const url = new URL(connection.server)
  const prefix = url.pathname.replace(/\/$/, '')
  let current: Agents | undefined

  const agentsFor = (tls: TlsMaterial): Agents => {
    if (current?.tls === tls) return current
    const old = current
    current = {
      tls,
      requests: agent(connection.proxyUrl, tls, { connections, maxResponseSize: maxAnswerBytes }),
      watches: agent(connection.proxyUrl, tls, { maxResponseSize: -1 }),
    }
    // The certificate was renewed: running requests may finish on the old connections. close() waits for them and
    // cannot fail otherwise.
    if (old) for (const agent of [old.requests, old.watches]) void agent.close().catch(() => {})
    return current
  }

  const send = (request: AuthorisedRequest, which: 'requests' | 'watches', idleTimeoutMs: number) =>
    agentsFor(request.credentials.tls)[which].request({
      origin: url.origin,
      path: prefix + request.path,
      method: request.method,
      headers: {
        accept: 'application/json',
        'user-agent': userAgent,
        ...(request.body === undefined ? {} : { 'content-type': request.contentType ?? 'application/json' }),
        ...request.credentials.headers,
      },
      body: request.body ?? null,
      signal: request.signal,
      // The body of a DELETE is part of the API. By default undici closes the connection after it, and the next write,
      // which may be a promotion, would begin with a TLS handshake.
      reset: false,
      // The call's signal is the only deadline: one clock for connecting, sending, waiting and reading.
      headersTimeout: 0,
      bodyTimeout: idleTimeoutMs,
    })

  return {
    host: url.host,
    async unary(request) {
      request.permit?.()
      try {
        const answer = await send(request, 'requests', 0)
        return { status: answer.statusCode, headers: answer.headers, text: await answer.body.text() }
      } catch (error) {
        throw fromNetwork(error, request)
      }
    },
    stream: idleTimeoutMs => async request => {
      try {
        const answer = await send(request, 'watches', idleTimeoutMs)
        return { status: answer.statusCode, headers: answer.headers, body: streamOf(answer.body, request) }
      } catch (error) {
        throw fromNetwork(error, request)
      }
    },
    async destroy() {
      const agents = current
      current = undefined
      await Promise.all([agents?.requests.destroy(), agents?.watches.destroy()])
    },
  }
}

function agent(proxyUrl: string | undefined, tls: TlsMaterial, options: Agent.Options): Dispatcher {
  const connect = { ...tls, timeout: connectTimeoutMs, keepAlive: true, keepAliveInitialDelay: 15_000 }
  const common: Agent.Options = {
    ...options,
    allowH2: false,
    pipelining: 1,
    keepAliveTimeout: keepAliveMs,
    keepAliveMaxTimeout: keepAliveMs,
  }
  return proxyUrl === undefined
    ? new Agent({ ...common, connect })
    : new ProxyAgent({ ...common, uri: proxyUrl, requestTls: connect })
}

function streamOf(body: Dispatcher.ResponseData['body'], request: HttpRequest): StreamAnswer['body'] {
  // A body that stays unread for long must not cause an unhandled 'error' event; readers get the error by iterating.
  body.on('error', () => {})
  return {
    async *[Symbol.asyncIterator]() {
      try {
        for await (const chunk of body) yield chunk as Buffer
      } catch (error) {
        throw fromNetwork(error, request)
      }
    },
    destroy: () => {
      body.destroy()
    },
  }
}

/** Failures before any byte of the request was sent: the server has not executed it. */
const neverSent = new Set([
  'ECONNREFUSED',
  'ENOTFOUND',
  'EAI_AGAIN',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'UND_ERR_CONNECT_TIMEOUT',
  'DEPTH_ZERO_SELF_SIGNED_CERT',
  'SELF_SIGNED_CERT_IN_CHAIN',
  'UNABLE_TO_VERIFY_LEAF_SIGNATURE',
  'UNABLE_TO_GET_ISSUER_CERT_LOCALLY',
  'CERT_HAS_EXPIRED',
  'ERR_TLS_CERT_ALTNAME_INVALID',
])

/** Converts any error of a connection to a KubeError. */
function fromNetwork(error: unknown, request: HttpRequest): KubeError {
  const what = `${request.verb} ${request.subject}`
  if (request.signal.aborted) {
    // Our own deadline aborts with a KubeError as the reason, the caller with any value.
    const { reason } = request.signal
    const code = reason instanceof KubeError ? reason.code : 'Aborted'
    const text = reason instanceof Error ? reason.message : String(reason)
    return new KubeError(code, `${what}: ${text}`, { cause: reason, ambiguous: isWrite(request) })
  }
  const { code, message } =
    error instanceof Error ? (error as NodeJS.ErrnoException) : { code: '', message: String(error) }
  if (error instanceof undiciErrors.BodyTimeoutError) {
    return new KubeError('Unavailable', `${what}: the connection stopped delivering data`, { cause: error })
  }
  return new KubeError('Unavailable', `${what}: ${message || code || 'connection failed'}`, {
    cause: error,
    ambiguous: isWrite(request) && !neverSent.has(code ?? ''),
  })
}

const isWrite = (request: HttpRequest) => request.method !== 'GET'

/** Layer: an answer of 400 and above becomes the KubeError that its Status body describes. */
export function checkedText(exchange: Exchange<TextAnswer>): Exchange<TextAnswer> {
  return async request => {
    const answer = await exchange(request)
    if (answer.status >= 400) throw fromAnswer(answer, answer.text, request)
    return answer
  }
}

/** As `checkedText`, for an answer whose body is still arriving. */
export function checkedStream(exchange: Exchange<StreamAnswer>): Exchange<StreamAnswer> {
  return async request => {
    const answer = await exchange(request)
    if (answer.status < 400) return answer
    const chunks: Buffer[] = []
    let bytes = 0
    for await (const chunk of answer.body) {
      chunks.push(chunk)
      bytes += chunk.length
      if (bytes > maxErrorBytes) break
    }
    answer.body.destroy()
    throw fromAnswer(answer, Buffer.concat(chunks).toString('utf8'), request)
  }
}

function fromAnswer(answer: HttpAnswer, text: string, request: HttpRequest): KubeError {
  const status = statusOf(text)
  const code = codeOf(answer.status, status.reason)
  return errorFromStatus(answer.status, status, {
    what: `${request.verb} ${request.subject}`,
    retryAfterMs: retryAfterOf(answer.headers['retry-after']),
    // A server error on a write may have come after the commit (etcd lost its leader, a proxy lost its upstream).
    ambiguous: isWrite(request) && (code === 'Unavailable' || code === 'Timeout'),
  })
}

function statusOf(text: string): Status {
  try {
    const parsed: unknown = JSON.parse(text)
    if (typeof parsed === 'object' && parsed !== null && (parsed as Status).kind === 'Status')
      return parsed as Status
  } catch {
    // Proxies and load balancers answer with their own pages.
  }
  const line = text.trim().split('\n', 1)[0] ?? ''
  return line === '' ? {} : { message: line.slice(0, 200) }
}

/** Retry-After in milliseconds. The API server sends only seconds; the date form of some proxies is ignored. */
function retryAfterOf(header: string | string[] | undefined): number | undefined {
  const seconds = Number(Array.isArray(header) ? header[0] : header)
  return Number.isFinite(seconds) && seconds >= 0 ? seconds * 1000 : undefined
}
