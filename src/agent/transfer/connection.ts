/** One connection to another agent, for all requests to it. */
import { type ClientHttp2Session, connect as connectHttp2 } from 'node:http2'
import { isIP } from 'node:net'
import { connect as connectTls, type TLSSocket } from 'node:tls'
import { AgentError } from '../../api/agent-errors.ts'
import type { Clock } from '../../kube/clock.ts'
import type { Identity } from './identity.ts'
import { keepAlive } from './keep-alive.ts'
import { peerFingerprint, pinnedTls } from './pinned.ts'

export interface Peer {
  /** host:port, as in the report of its node. */
  readonly address: string
  readonly fingerprint: string
}

const connectTimeoutMs = 5_000
/**
 * Seconds without a sign of life after which a source counts as dead: a slot may be waiting for its memory, and another
 * node may have it.
 */
const sourceDiesAfter = 5
/** Most bytes in flight: more than a fast network carries during one turn of the event loop. */
const windowBytes = 8 * 1024 * 1024

/**
 * Connects, and verifies the peer's key before any request.
 * @param localAddress the address in this node's report: the peer accepts connections from no other.
 * @throws AgentError PeerUnreachable, PeerKeyDiffers
 */
export async function connectPeer(
  peer: Peer,
  identity: Pick<Identity, 'key' | 'cert'>,
  clock: Clock,
  localAddress?: string,
): Promise<ClientHttp2Session> {
  const socket = await handshake(peer, identity, clock, localAddress)
  const fingerprint = peerFingerprint(socket)
  if (fingerprint !== peer.fingerprint) {
    socket.destroy()
    throw new AgentError('PeerKeyDiffers', `${peer.address} has ${fingerprint}, not ${peer.fingerprint}`)
  }
  if (socket.alpnProtocol !== 'h2') {
    socket.destroy()
    throw new AgentError('PeerMalformed', `${peer.address} does not speak HTTP/2`)
  }
  const session = connectHttp2(`https://${peer.address}`, {
    createConnection: () => socket,
    settings: { initialWindowSize: windowBytes, enablePush: false },
  })
  session.setLocalWindowSize(2 * windowBytes)
  keepAlive(session, { clock, looks: sourceDiesAfter })
  return session
}

async function handshake(
  { address }: Peer,
  identity: Pick<Identity, 'key' | 'cert'>,
  clock: Clock,
  localAddress: string | undefined,
): Promise<TLSSocket> {
  const { host, port } = parseAddress(address)
  // Only for the same IP version: a node may have both, and its report one.
  const from = localAddress !== undefined && isIP(localAddress) === isIP(host) ? { localAddress } : {}
  const socket = connectTls({ ...pinnedTls(identity), host, port, servername: '', ...from })
  socket.setNoDelay(true)
  const connected = new AbortController()
  try {
    await new Promise<void>((resolve, reject) => {
      socket.once('secureConnect', resolve)
      socket.once('error', reject)
      clock.sleep(connectTimeoutMs, connected.signal).then(
        () => reject(new Error(`no connection within ${connectTimeoutMs} ms`)),
        () => {
          // Connected or failed before.
        },
      )
    })
    return socket
  } catch (error) {
    // Ignores later errors of a socket that is not used any more.
    socket.on('error', () => {})
    socket.destroy()
    throw new AgentError('PeerUnreachable', `${address}: ${(error as Error).message}`, error)
  } finally {
    connected.abort()
  }
}

/** @throws AgentError PeerUnreachable when it is not host:port. */
export function parseAddress(address: string): { readonly host: string; readonly port: number } {
  const [, bracketed, plain, digits = ''] =
    /^(?:\[([0-9a-fA-F:.]+)\]|([^:[\]/@\s]+)):(\d{1,5})$/.exec(address) ?? []
  const host = bracketed ?? plain
  const port = Number(digits)
  if (host === undefined || port < 1 || port > 65535)
    throw new AgentError('PeerUnreachable', `${JSON.stringify(address)} is not host:port`)
  return { host, port }
}
