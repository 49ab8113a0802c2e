/** Serves the page, its messages and its requests for drills on the loopback addresses of this machine. */
import { randomBytes } from 'node:crypto'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { PageAssets } from './assets.ts'
import { document } from './document.ts'
import type { Feed } from './feed.ts'
import { hasKey, refusalOf } from './guard.ts'
import type { DrillAnswer, DrillRequest } from './wire.ts'

export interface DashboardServer {
  /** The address to open, with the key. It is like a password: it gives every right that the user has here. */
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
  /** Hears why a connection was lost on this side. The server continues. */
  readonly problem: (error: Error) => void
  /** How long a connection may take to send the head of a request, ms. */
  readonly headTimeoutMs?: number
}

/** A page that reads too slowly misses messages from here on, and gets everything as soon as it has caught up. */
const mostUnsentBytes = 1024 * 1024
const mostBodyBytes = 4_096
/** Every user of the machine can connect. Each connection costs the program a descriptor, which it needs for the API server, too. */
const mostConnections = 64
const defaultHeadTimeoutMs = 5_000

/** @throws Error of the system if the port is taken */
export async function serve(options: ServerOptions): Promise<DashboardServer> {
  const key = randomBytes(32).toString('base64url')
  const { headTimeoutMs = defaultHeadTimeoutMs, problem } = options
  const handle = (request: IncomingMessage, response: ServerResponse) => {
    const { localPort: port = 0 } = request.socket
    void answer(request, response, { ...options, key, port }).catch(() => response.destroy())
  }
  const created = (): Server => {
    const timeouts = { headersTimeout: headTimeoutMs, requestTimeout: 2 * headTimeoutMs }
    const server = createServer({ ...timeouts, connectionsCheckingInterval: headTimeoutMs / 5 }, handle)
    server.maxConnections = mostConnections
    return server
  }
  const first = created()
  await listening(first, '127.0.0.1', options.port)
  const { port } = addressOf(first)
  const second = created()
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
  // Without descriptors, a server reports that it cannot accept: it can again as soon as some are free.
  for (const server of servers) server.on('error', problem)
  return {
    address: `http://127.0.0.1:${port}/#key=${key}`,
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

type Context = ServerOptions & { readonly key: string; readonly port: number }

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
  const { key, port, assets } = context
  for (const [name, value] of Object.entries(headersOfAll)) response.setHeader(name, value)
  const refusal = refusalOf(request.headers, port)
  if (refusal !== undefined) return text(response, 403, refusal)
  const wanted = `${request.method} ${request.url}`
  switch (wanted) {
    case 'GET /':
      return body(response, 'text/html; charset=utf-8', document)
    case 'GET /page.js':
      return body(response, 'text/javascript; charset=utf-8', assets.script)
    case 'GET /page.css':
      return body(response, 'text/css; charset=utf-8', assets.style)
  }
  if (!hasKey(request.headers, key))
    return text(response, 403, 'open the address that the program has printed: this page lacks its key')
  switch (wanted) {
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

/** Sends each message as a line of JSON. */
function events(response: ServerResponse, feed: Context['feed']): void {
  response.writeHead(200, { 'content-type': 'application/x-ndjson' })
  let hasMissed = false
  const hear = () =>
    feed.subscribe(message => {
      if (response.writableLength > mostUnsentBytes) hasMissed = true
      else response.write(`${message}\n`)
    })
  let end = hear()
  response.on('drain', () => {
    if (!hasMissed) return
    hasMissed = false
    end()
    end = hear()
  })
  response.once('close', () => end())
}

async function drill(
  request: IncomingMessage,
  response: ServerResponse,
  { drill: perform }: Context,
): Promise<void> {
  if (request.headers.origin === undefined) return text(response, 403, 'the request is from no page')
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
