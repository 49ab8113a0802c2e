/**
 * Transfer of an application's own state over HTTP: GET fetches it, POST, PUT or PATCH gives it back. Redirects are
 * never followed.
 */
import { createHash } from 'node:crypto'
import type { Readable } from 'node:stream'
import { createGunzip } from 'node:zlib'
import { type Dispatcher, request } from 'undici'
import type { HttpHeader } from '../../api/backuppodset.ts'
import type { ParsedPull } from '../../api/memory.ts'

export interface TransferredState {
  /** The body of the application's answer, decompressed. */
  readonly bytes: Buffer
  /** SHA-256 of `bytes`, hex. */
  readonly digest: string
  /** As the application named it; the push sends it back. */
  readonly contentType: string | undefined
}

export type PullFailure = 'PullFailed' | 'StateTooLarge' | 'StateBudgetExceeded'

export type PullResult =
  | { readonly type: 'state'; readonly state: TransferredState }
  | { readonly type: 'failed'; readonly reason: PullFailure; readonly why: string }

export type PushResult =
  | { readonly type: 'taken' }
  /**
   * `inDoubt`: the request may have been sent, perhaps in full, without an answer; the application may still apply it.
   */
  | { readonly type: 'failed'; readonly why: string; readonly inDoubt: boolean }

/** The connection was never made, so nothing was sent. */
const unsent = new Set(['ECONNREFUSED', 'EHOSTUNREACH', 'ENETUNREACH', 'UND_ERR_CONNECT_TIMEOUT'])

/** Status codes of 2xx that do not carry a complete state. */
const withoutState = new Set([204, 205, 206])

class TooLarge extends Error {}
class NoRoom extends Error {}

/**
 * Fetches the state once, within `timeoutMs` in all. It closes the connection as soon as the state is known to exceed
 * `maxBytes`, compressed or decompressed. Failures of the application or the network are returned, never thrown. No
 * message contains any part of a state.
 * @param take reserves room before each chunk is kept; false: no room. It is called with twice the chunk's bytes,
 * because the chunks are joined at the end.
 * @throws the signal's reason.
 */
export async function pullState(
  host: string,
  pull: Pick<ParsedPull, 'port' | 'path' | 'headers' | 'maxBytes' | 'timeoutMs'>,
  dispatcher: Dispatcher,
  signal: AbortSignal,
  take: (bytes: number) => boolean = () => true,
): Promise<PullResult> {
  const url = urlOf(host, pull.port, pull.path)
  const failed = (why: string): PullResult => ({
    type: 'failed',
    reason: 'PullFailed',
    why: `GET ${url} ${why}`,
  })
  try {
    const answer = await request(url, {
      dispatcher,
      method: 'GET',
      headers: headersOf([{ name: 'accept-encoding', value: 'gzip' }], pull.headers),
      signal: AbortSignal.any([signal, AbortSignal.timeout(pull.timeoutMs)]),
    })
    const { statusCode, headers, body } = answer
    const drop = (why: string) => {
      body.on('error', () => {}).destroy()
      return failed(why)
    }
    if (statusCode < 200 || statusCode > 299) return drop(`answered ${statusCode}`)
    if (withoutState.has(statusCode)) return drop(`answered ${statusCode}, which carries no complete state`)
    const encoding = one(headers['content-encoding'])?.toLowerCase() ?? 'identity'
    if (encoding !== 'identity' && encoding !== 'gzip')
      return drop(`answered in the unknown encoding ${encoding}`)
    if (Number(one(headers['content-length']) ?? 0) > pull.maxBytes) {
      body.on('error', () => {}).destroy()
      throw new TooLarge()
    }
    const plain = await bytesOf(body, pull.maxBytes, encoding === 'gzip', take)
    return {
      type: 'state',
      state: {
        bytes: plain,
        digest: createHash('sha256').update(plain).digest('hex'),
        contentType: one(headers['content-type']),
      },
    }
  } catch (error) {
    signal.throwIfAborted()
    if (error instanceof TooLarge) {
      const why = `GET ${url} returned more than ${pull.maxBytes} bytes: raise checkpoint.http.maxSize, or let the application return less`
      return { type: 'failed', reason: 'StateTooLarge', why }
    }
    if (error instanceof NoRoom) {
      const why = `GET ${url} returned a state for which the operator has no room: let the application return less, keep fewer slots this way, or start the operator with a larger --state-budget`
      return { type: 'failed', reason: 'StateBudgetExceeded', why }
    }
    return failed(messageOf(error, pull.timeoutMs))
  }
}

/**
 * Gives a state to an application, once. Only a status from 200 to 299 means that the application took it.
 * @throws the signal's reason.
 */
export async function pushState(
  host: string,
  pull: Pick<ParsedPull, 'port' | 'headers' | 'push' | 'timeoutMs'>,
  state: TransferredState,
  dispatcher: Dispatcher,
  signal: AbortSignal,
): Promise<PushResult> {
  const { path, method, headers } = pull.push
  const url = urlOf(host, pull.port, path)
  const own = state.contentType === undefined ? [] : [{ name: 'content-type', value: state.contentType }]
  try {
    const { statusCode, body } = await request(url, {
      dispatcher,
      method,
      headers: headersOf(pull.headers, headers, own),
      body: state.bytes,
      signal: AbortSignal.any([signal, AbortSignal.timeout(pull.timeoutMs)]),
    })
    await body.dump({ limit: 64 * 1024 }).catch(() => {})
    return statusCode >= 200 && statusCode <= 299
      ? { type: 'taken' }
      : { type: 'failed', why: `${method} ${url} answered ${statusCode}`, inDoubt: false }
  } catch (error) {
    signal.throwIfAborted()
    const why = `${method} ${url} ${messageOf(error, pull.timeoutMs)}`
    return { type: 'failed', why, inDoubt: !unsent.has(codeOf(error)) }
  }
}

const codeOf = (error: unknown): string =>
  error instanceof Error && 'code' in error ? String(error.code) : ''

const urlOf = (host: string, port: number, path: string): string =>
  `http://${host.includes(':') ? `[${host}]` : host}:${port}${path}`

/** Later lists win. Names are compared without case. */
function headersOf(...lists: readonly (readonly HttpHeader[])[]): Record<string, string> {
  return Object.fromEntries(lists.flat().map(({ name, value }) => [name.toLowerCase(), value]))
}

async function bytesOf(
  body: Readable,
  maxBytes: number,
  isPacked: boolean,
  take: (bytes: number) => boolean,
): Promise<Buffer> {
  const chunks: Buffer[] = []
  let size = 0
  // `pipe` does not forward errors: without this, decompression would wait for more input.
  const plain = isPacked ? body.pipe(createGunzip()) : body
  if (plain !== body) body.on('error', error => plain.destroy(error))
  try {
    for await (const chunk of plain as AsyncIterable<Buffer>) {
      size += chunk.length
      if (size > maxBytes) throw new TooLarge()
      if (!take(2 * chunk.length)) throw new NoRoom()
      chunks.push(chunk)
    }
  } finally {
    body.on('error', () => {}).destroy()
  }
  return Buffer.concat(chunks, size)
}

const one = (value: string | string[] | undefined): string | undefined =>
  Array.isArray(value) ? value[0] : value

function messageOf(error: unknown, timeoutMs: number): string {
  if (!(error instanceof Error)) return String(error)
  if (error.name === 'TimeoutError') return `was not complete within ${timeoutMs / 1000} s`
  return `failed: ${error.message}`
}
