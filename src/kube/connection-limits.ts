/** Limits the connections of unidentified clients to a server: each costs memory, even if it never sends a byte. */
import type { Server, Socket } from 'node:net'

export interface ConnectionLimits {
  /** Open at once, from all addresses together. */
  readonly forAll: number
  /** Open at once, from one address. */
  readonly forEach: number
  /** Whether this address may connect at all; called before anything is read. Default: any address may. */
  readonly mayConnect?: ((address: string) => boolean) | undefined
}

export interface LimitedConnections {
  readonly count: number
  /** The client of this connection has identified itself: the connection no longer counts. */
  settle(socket: Pick<Socket, 'remoteAddress' | 'remotePort'>): void
}

/**
 * Limits the open connections of a server from now on. Beyond a limit it closes the oldest connection, not the newest:
 * a genuine client sends at once, so a flood of silent connections, even from the same address, locks out no client.
 */
export function limitConnections(
  server: Server,
  { forAll, forEach, mayConnect = () => true }: ConnectionLimits,
): LimitedConnections {
  // Oldest first.
  const open = new Map<string, Socket>()
  const drop = (key: string, socket: Socket) => {
    open.delete(key)
    socket.destroy()
  }
  server.prependListener('connection', (socket: Socket) => {
    const address = plainAddress(socket.remoteAddress)
    // Errors of a connection that is closed here do not matter.
    socket.on('error', () => undefined)
    if (address === undefined || !mayConnect(address)) {
      socket.destroy()
      return
    }
    const key = keyOf(socket)
    open.set(key, socket)
    socket.once('close', () => {
      if (open.get(key) === socket) open.delete(key)
    })
    const [oldest, ...others] = [...open].filter(([, each]) => plainAddress(each.remoteAddress) === address)
    if (oldest !== undefined && others.length >= forEach) drop(...oldest)
    const [first] = open
    if (first !== undefined && open.size > forAll) drop(...first)
  })
  return {
    get count() {
      return open.size
    },
    settle: socket => {
      open.delete(keyOf(socket))
    },
  }
}

/** The IPv4 form of an IPv4-mapped IPv6 address, else the address itself. Undefined: the socket has been closed. */
export const plainAddress = (address: string | undefined): string | undefined =>
  address?.replace(/^::ffff:(?=\d+\.)/, '')

const keyOf = ({ remoteAddress, remotePort }: Pick<Socket, 'remoteAddress' | 'remotePort'>) =>
  `${remoteAddress} ${remotePort}`
