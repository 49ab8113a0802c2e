/** A scripted HTTP(S) server on loopback, for tests of failures between the client and an API server. */
import { createServer as createHttpServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { createServer as createHttpsServer } from 'node:https'
import type { AddressInfo, Socket } from 'node:net'
import type { Connection } from '../connection.ts'
import { testCertificate, testKey } from './certificate.ts'

export interface Received {
  readonly method: string
  readonly url: URL
  readonly headers: IncomingMessage['headers']
  readonly body: string
  readonly response: ServerResponse
  /** Cuts the connection as a crashed peer does (RST). */
  cut(): void
  /** Answers with JSON. */
  json(status: number, body: unknown, headers?: Record<string, string>): void
}

export interface TestServer {
  readonly connection: Connection
  readonly received: readonly Received[]
  /** Connections accepted since the start. */
  accepted(): number
  /** Connections open now. */
  open(): number
  close(): Promise<void>
}

export async function startTestServer(
  handle: (request: Received, nth: number) => unknown,
  { tls = false }: { readonly tls?: boolean } = {},
): Promise<TestServer> {
  const received: Received[] = []
  const sockets = new Set<Socket>()
  let accepted = 0

  const onRequest = async (request: IncomingMessage, response: ServerResponse) => {
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk as Buffer)
    const entry: Received = {
      method: request.method ?? '',
      url: new URL(request.url ?? '', 'http://test'),
      headers: request.headers,
      body: Buffer.concat(chunks).toString('utf8'),
      response,
      cut: () => request.socket.resetAndDestroy(),
      json(status, body, headers = {}) {
        response.writeHead(status, { 'content-type': 'application/json', ...headers })
        response.end(JSON.stringify(body))
      },
    }
    received.push(entry)
    await handle(entry, received.length)
  }
  const listener = (request: IncomingMessage, response: ServerResponse) => {
    // A client that disconnects early is part of the tests.
    onRequest(request, response).catch(() => response.destroy())
  }

  const server = tls
    ? createHttpsServer({ cert: testCertificate, key: testKey }, listener)
    : createHttpServer(listener)
  server.on('connection', (socket: Socket) => {
    accepted += 1
    sockets.add(socket)
    socket.on('close', () => sockets.delete(socket))
    socket.on('error', () => {})
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo

  return {
    connection: staticConnection(`${tls ? 'https' : 'http'}://127.0.0.1:${port}`, {
      headers: { authorization: 'Bearer test' },
      tls: tls ? { ca: testCertificate } : {},
    }),
    received,
    accepted: () => accepted,
    open: () => sockets.size,
    close: () =>
      new Promise(resolve => {
        server.close(() => resolve())
        for (const socket of sockets) socket.destroy()
      }),
  }
}

export function staticConnection(
  server: string,
  credentials: Awaited<ReturnType<Connection['credentials']>>,
): Connection {
  return {
    server,
    namespace: undefined,
    proxyUrl: undefined,
    credentials: () => Promise.resolve(credentials),
    invalidate() {},
  }
}

/** A Status body as the API server writes it. */
export const statusBody = (code: number, reason: string, message: string, details?: object) => ({
  kind: 'Status',
  apiVersion: 'v1',
  status: 'Failure',
  code,
  reason,
  message,
  ...(details ? { details } : {}),
})
