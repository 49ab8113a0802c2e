/** How many connections a server keeps open for whoever asks: each costs memory, also one that never says a word. */
import type { Server, Socket } from 'node:net'

export interface ConnectionLimits {
  /** At once, of all addresses together. */
  readonly forAll: number
  /** At once, of one address. */
  readonly forEach: number
  /** Whether this address may connect at all, asked before anything is read. Default: any. */
  readonly mayConnect?: ((address: string) => boolean) | undefined
}

export interface LimitedConnections {
  readonly count: number
  /** This one has shown who it is: it counts no more. */
  settle(socket: Pick<Socket, 'remoteAddress' | 'remotePort'>): void
}

/**
 * Limits what a server keeps open from now on. Beyond a limit the oldest one goes and not the newest: who has something
 * to say says it at once, and a flood of silent ones, from behind the same address too, keeps nobody out.
 */
export function limitConnections(
  server: Server,
  { forAll, forEach, mayConnect = () => true }: ConnectionLimits,
): LimitedConnections {
  // The oldest first.
  const open = new Map<string, Socket>()
  const drop = (key: string, socket: Socket) => {
    open.delete(key)
    socket.destroy()
  }
  server.prependListener('connection', (socket: Socket) => {
    const address = plainAddress(socket.remoteAddress)
    // What goes wrong with one that is thrown out concerns nobody.
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

/** IPv4 as such also where the socket is one of IPv6; undefined: it has gone. */
export const plainAddress = (address: string | undefined): string | undefined =>
  address?.replace(/^::ffff:(?=\d+\.)/, '')

const keyOf = ({ remoteAddress, remotePort }: Pick<Socket, 'remoteAddress' | 'remotePort'>) =>
  `${remoteAddress} ${remotePort}`
