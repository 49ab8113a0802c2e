/** The connections to other agents: one for each, for all requests. */
import type { ClientHttp2Session } from 'node:http2'
import { unlessAborted } from '../../kube/abort.ts'
import type { Clock } from '../../kube/clock.ts'
import type { Log } from '../../kube/log.ts'
import { connectPeer, type Peer } from './connection.ts'
import type { Identity } from './identity.ts'

export interface SessionOptions {
  readonly identity: Pick<Identity, 'key' | 'cert'>
  /** Local address of the connections. Default: the kernel chooses. */
  readonly localAddress?: string | undefined
  readonly clock: Clock
  readonly log: Log
}

export interface Sessions {
  /**
   * Returns an open connection, and a function that ends this use of it.
   * @throws AgentError Peer*, the signal's reason.
   */
  use(
    peer: Peer,
    signal: AbortSignal,
  ): Promise<{ readonly session: ClientHttp2Session; readonly endUse: () => void }>
  close(): void
}

/** An unused connection is closed after so long. */
const idleMs = 60_000

interface Use {
  count: number
  /** Aborts the timer that closes an unused connection. */
  idle: AbortController | undefined
}

export function createSessions({ identity, localAddress, clock, log }: SessionOptions): Sessions {
  const connections = new Map<string, Promise<ClientHttp2Session>>()
  const uses = new WeakMap<ClientHttp2Session, Use>()

  const connection = (peer: Peer): Promise<ClientHttp2Session> => {
    const key = `${peer.fingerprint} ${peer.address}`
    const known = connections.get(key)
    if (known) return known
    const forget = () => {
      if (connections.get(key) === connecting) connections.delete(key)
    }
    // One attempt for all callers: the slots of a dead node must not each try to connect.
    const connecting = connectPeer(peer, identity, clock, localAddress).then(session => {
      session.on('error', error =>
        log.debug({ err: error, peer: peer.address }, 'connection to a peer broke'),
      )
      session.once('goaway', forget)
      session.once('close', () => {
        forget()
        uses.get(session)?.idle?.abort()
      })
      return session
    })
    connecting.catch(forget)
    connections.set(key, connecting)
    return connecting
  }

  /** Returns the function that ends this use of the connection. */
  const beginUse = (session: ClientHttp2Session): (() => void) => {
    const use = uses.get(session) ?? { count: 0, idle: undefined }
    uses.set(session, use)
    use.count += 1
    use.idle?.abort()
    return () => {
      use.count -= 1
      if (use.count > 0 || session.destroyed) return
      use.idle = new AbortController()
      clock.sleep(idleMs, use.idle.signal).then(
        () => session.close(),
        () => {
          // The connection is in use again, or gone.
        },
      )
    }
  }

  return {
    async use(peer, signal) {
      const session = await unlessAborted(connection(peer), signal)
      return { session, endUse: beginUse(session) }
    },
    close() {
      for (const connecting of connections.values())
        connecting.then(
          session => session.destroy(),
          () => {
            // The connection never opened.
          },
        )
      connections.clear()
    },
  }
}
