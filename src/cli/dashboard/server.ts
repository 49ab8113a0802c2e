/** Serves the page, its messages and its requests for drills on the loopback addresses of this machine. */
import { randomBytes } from 'node:crypto'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { PageAssets } from './assets.ts'
import { arrival, document } from './document.ts'
import type { Feed } from './feed.ts'
import { cookieName, hasCookie, hasToken, isEqual, type Keys, refusalOf } from './guard.ts'
import type { DrillAnswer, DrillRequest } from './wire.ts'

export interface DashboardServer {
  /** The address to open, with the invitation. It is like a password: it gives every right that the user has here. */
  readonly address: string
  readonly port: number
  close(): Promise<void>
}

export interface ServerOptions {
  readonly assets: PageAssets
  readonly feed: Pick<Feed, 'subscribe'>
  readonly drill: (request: DrillRequest) => Promise<DrillAnswer>
  /** 0: any that is free. */
  readonly port: number
}

/** A page that does not read loses its connection, and gets everything with the next one. */
const mostUnsentBytes = 32 * 1024 * 1024
const mostBodyBytes = 4_096

/** @throws Error of the system if the port is taken */
export async function serve(options: ServerOptions): Promise<DashboardServer> {
  const secret = () => randomBytes(32).toString('base64url')
  const keys: Keys = { invitation: secret(), cookie: secret(), page: secret() }
  const handle = (request: IncomingMessage, response: ServerResponse) => {
    const { localPort: port = 0 } = request.socket
    void answer(request, response, { ...options, keys, port }).catch(() => response.destroy())
  }
  const first = createServer(handle)
  await listening(first, '127.0.0.1', options.port)
  const { port } = addressOf(first)
  const second = createServer(handle)
  const servers = [first]
  // A machine without IPv6 has no such address. Another program on the port there could pose as this one to `localhost`.
  await listening(second, '::1', port).then(
    () => servers.push(second),
    (error: NodeJS.ErrnoException) => {
      if (error.code === 'EADDRNOTAVAIL' || error.code === 'EAFNOSUPPORT') return
      first.close()
      throw error
    },
  )
  return {
    address: `http://127.0.0.1:${port}/?token=${keys.invitation}`,
    port,
    async close() {
      await Promise.all(
        servers.map(server => {
          const closed = new Promise(resolve => server.close(resolve))
          server.closeAllConnections()
          return closed
        }),
      )
    },
  }
}

function addressOf(server: Server): AddressInfo {
  const address = server.address()
  if (address === null || typeof address === 'string') throw new TypeError('the server has no port')
  return address
}

const listening = (server: Server, host: string, port: number): Promise<void> =>
  new Promise((resolve, reject) => {
    server.once('error', reject)
    server.listen(port, host, () => {
      server.off('error', reject)
      resolve()
    })
  })

type Context = ServerOptions & { readonly keys: Keys; readonly port: number }

/** The browser may load nothing but our own files, and no text becomes markup or a script. */
const contentPolicy = [
  "default-src 'none'",
  ...["script-src 'self'", "style-src 'self'", "connect-src 'self'", "img-src 'self'"],
  ...["base-uri 'none'", "form-action 'none'", "frame-ancestors 'none'"],
  ...["require-trusted-types-for 'script'", 'trusted-types lit-html'],
].join('; ')

const headersOfAll = {
  'content-security-policy': contentPolicy,
  'x-content-type-options': 'nosniff',
  'referrer-policy': 'no-referrer',
  'cross-origin-opener-policy': 'same-origin',
  'cross-origin-resource-policy': 'same-origin',
  'cache-control': 'no-store',
}

async function answer(request: IncomingMessage, response: ServerResponse, context: Context): Promise<void> {
  const { keys, port, assets } = context
  for (const [name, value] of Object.entries(headersOfAll)) response.setHeader(name, value)
  const refusal = refusalOf(request.headers, port)
  if (refusal !== undefined) return text(response, 403, refusal)
  const url = new URL(request.url ?? '/', 'http://127.0.0.1')
  const token = url.searchParams.get('token')
  if (request.method === 'GET' && url.pathname === '/' && token !== null && isEqual(token, keys.invitation)) {
    response.setHeader('set-cookie', `${cookieName(port)}=${keys.cookie}; HttpOnly; SameSite=Strict; Path=/`)
    return body(response, 'text/html; charset=utf-8', arrival)
  }
  if (!hasCookie(request.headers, port, keys.cookie))
    return text(response, 403, 'open the address that the program has printed: this one lacks its token')
  switch (`${request.method} ${url.pathname}`) {
    case 'GET /':
      return body(response, 'text/html; charset=utf-8', document(keys.page))
    case 'GET /page.js':
      return body(response, 'text/javascript; charset=utf-8', assets.script)
    case 'GET /page.css':
      return body(response, 'text/css; charset=utf-8', assets.style)
    case 'GET /events':
      return events(response, context.feed)
    case 'POST /drill':
      return drill(request, response, context)
    default:
      return text(response, 404, 'there is no such page')
  }
}

function text(response: ServerResponse, status: number, words: string): void {
  response.writeHead(status, { 'content-type': 'text/plain; charset=utf-8' }).end(`${words}\n`)
}

const body = (response: ServerResponse, type: string, content: string): void => {
  response.writeHead(200, { 'content-type': type }).end(content)
}

function events(response: ServerResponse, feed: Context['feed']): void {
  response.writeHead(200, { 'content-type': 'text/event-stream' })
  const end = feed.subscribe(message => {
    response.write(`data: ${message}\n\n`)
    if (response.writableLength > mostUnsentBytes) response.destroy()
  })
  response.once('close', end)
}

async function drill(
  request: IncomingMessage,
  response: ServerResponse,
  { keys, drill: perform }: Context,
): Promise<void> {
  if (!hasToken(request.headers, keys.page) || request.headers.origin === undefined)
    return text(response, 403, 'load the page again: it was opened from another run of the program')
  const wanted = parseDrill(await bodyOf(request))
  if (wanted === undefined) return text(response, 400, 'the request names no slot of a set')
  body(response, 'application/json', JSON.stringify(await perform(wanted)))
}

async function bodyOf(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = []
  let size = 0
  for await (const chunk of request) {
    const bytes = Buffer.from(chunk)
    size += bytes.length
    if (size > mostBodyBytes) throw new RangeError('the body is too long')
    chunks.push(bytes)
  }
  return Buffer.concat(chunks).toString()
}

function parseDrill(json: string): DrillRequest | undefined {
  try {
    const value: unknown = JSON.parse(json)
    if (typeof value !== 'object' || value === null) return undefined
    const { namespace, set, slot } = value as Readonly<Record<string, unknown>>
    const isName = (each: unknown): each is string =>
      typeof each === 'string' && /^[a-z0-9.-]{1,253}$/.test(each)
    if (!isName(namespace) || !isName(set) || typeof slot !== 'number' || !Number.isSafeInteger(slot))
      return undefined
    return { namespace, set, slot }
  } catch {
    return undefined
  }
}
