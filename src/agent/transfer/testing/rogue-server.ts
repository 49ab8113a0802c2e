/** A malicious peer with the right key. */
import { performServerHandshake, type ServerHttp2Stream } from 'node:http2'
import type { AddressInfo } from 'node:net'
import { createServer, type TLSSocket } from 'node:tls'
import type { Peer } from '../connection.ts'
import type { Identity } from '../identity.ts'
import { pinnedTls } from '../pinned.ts'

export interface RogueServer {
  readonly peer: Peer
  close(): Promise<void>
}

export async function startRogueServer(
  identity: Identity,
  answer: (stream: ServerHttp2Stream, path: string) => void,
): Promise<RogueServer> {
  const sockets = new Set<TLSSocket>()
  const server = createServer({ ...pinnedTls(identity), requestCert: true }, socket => {
    sockets.add(socket)
    socket.on('error', () => {})
    const session = performServerHandshake(socket)
    session.on('error', () => {})
    session.on('stream', (stream, headers) => {
      stream.on('error', () => {})
      answer(stream, String(headers[':path']))
    })
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  return {
    peer: { address: `127.0.0.1:${port}`, fingerprint: identity.fingerprint },
    close: () =>
      new Promise(resolve => {
        server.close(() => resolve())
        for (const socket of sockets) socket.destroy()
      }),
  }
}
