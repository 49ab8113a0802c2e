/**
 * Serves the generations of this node to agents of other nodes: only to nodes that a report names, and only the slots
 * that they may read.
 */
import {
  constants,
  performServerHandshake,
  type ServerHttp2Session,
  type ServerHttp2Stream,
} from 'node:http2'
import type { AddressInfo } from 'node:net'
import { createServer, type TLSSocket } from 'node:tls'
import type { GoAnswer, GoRequest } from '../../api/grant.ts'
import type { SlotKey } from '../../api/slot-key.ts'
import { encodeDelta } from '../../checkpoint/delta.ts'
import { slotName } from '../../checkpoint/manifest.ts'
import type { GenerationStore } from '../../checkpoint/store.ts'
import type { Clock } from '../../kube/clock.ts'
import { limitConnections, plainAddress } from '../../kube/connection-limits.ts'
import type { Log } from '../../kube/log.ts'
import type { Encode } from './codec.ts'
import type { Identity } from './identity.ts'
import { keepAlive } from './keep-alive.ts'
import { createKeyedSignal } from './keyed-signal.ts'
import { peerFingerprint, pinnedTls } from './pinned.ts'
import { type GenerationRequest, parseGo, parseRequest, statusOfGo } from './protocol.ts'
import { newest, sendGeneration } from './send.ts'
import { shareEncoding } from './share-encoding.ts'
import { createTurns } from './turns.ts'

export interface PeerServerOptions {
  readonly identity: Identity
  /** Default: all addresses. */
  readonly host?: string | undefined
  /** 0: any free port. */
  readonly port: number
  readonly store: Pick<GenerationStore, 'latest' | 'open' | 'retain' | 'announceReader'>
  /** Default: encodeDelta. */
  readonly encode?: Encode | undefined
  /**
   * Returns the node whose report has this fingerprint and address now. undefined: none; the server then reads no byte
   * of the connection.
   */
  readonly nodeOf: (fingerprint: string, address: string) => string | undefined
  /** True if a report has this address now; no TLS handshake starts with other addresses. Default: all addresses. */
  readonly mayConnect?: ((address: string) => boolean) | undefined
  /** Limits the connections that have not proven their key yet. Default 256 in all, 16 from one address. */
  readonly strangers?: { readonly forAll: number; readonly forEach: number } | undefined
  /** True if that node is to keep this slot's generations now. */
  readonly mayRead: (node: string, slot: SlotKey) => boolean
  /** True while another node needs the slot's newest generation before that node. Default: never. */
  readonly isLater?: ((node: string, slot: SlotKey) => boolean) | undefined
  /** Answers a node that uses a grant; undefined: not yet. */
  readonly agree?: (node: string, request: GoRequest) => Promise<GoAnswer> | undefined
  readonly clock: Clock
  readonly log: Log
  /** Limits concurrent transfers. Default 8 in all, 2 to one node; one namespace may take all but one. */
  readonly transfers?: { readonly forAll: number; readonly forEach: number } | undefined
  /** Milliseconds that a request waits for a newer generation. Default 30 s. */
  readonly waitMs?: number | undefined
  /** Milliseconds between two signs of life to a waiting receiver. Default 5 s. */
  readonly signOfLifeMs?: number | undefined
  /** Milliseconds that a peer may read nothing of a transfer. Default 30 s. */
  readonly silenceMs?: number | undefined
  /** Milliseconds after which a receiver that was sent a whole generation counts as done with it. Default 30 s. */
  readonly settleMs?: number | undefined
}

export interface PeerServer {
  readonly port: number
  /** Call it when the store has a new generation of this slot: it wakes the waiting requests. */
  announce(slot: SlotKey): void
  /** Closes all connections at once. */
  close(): Promise<void>
}

/**
 * By slot, for one connection: fires when the receiver has stored the last generation that it was sent. Its next
 * request is for the difference to that one. If the source made two more meanwhile, it would send all of the memory,
 * which takes longer, so that every following transfer would be a whole one, too.
 */
type Settling = Map<string, AbortController>

/** Waiting requests cost little, but not nothing. */
const maxStreams = 1024
const handshakeTimeoutMs = 10_000
/** Pause between two looks at whether another node still comes first, ms. */
const laterMs = 50
/** Seconds without a sign of life after which a receiver counts as dead. It costs only a turn. */
const receiverDiesAfter = 15
/** A client uses one connection, but a connection that it lost silently may still be open here. */
const connectionsOfPeer = 8

/** @throws Error when the port is not available. */
export async function createPeerServer(options: PeerServerOptions): Promise<PeerServer> {
  const { identity, host, port, store, nodeOf, mayRead, isLater = () => false, clock, log } = options
  const { waitMs = 30_000, signOfLifeMs = 5_000, silenceMs = 30_000, settleMs = 30_000 } = options
  const encode = shareEncoding(options.encode ?? encodeDelta, clock)
  const announcements = createKeyedSignal()
  const turns = createTurns(options.transfers ?? { forAll: 8, forEach: 2 })
  /** Oldest first. */
  const sockets = new Map<TLSSocket, string>()

  const server = createServer({
    ...pinnedTls(identity),
    requestCert: true,
    handshakeTimeout: handshakeTimeoutMs,
    noDelay: true,
  })
  const strangers = limitConnections(server, {
    ...(options.strangers ?? { forAll: 256, forEach: 16 }),
    mayConnect: options.mayConnect,
  })
  server.on('secureConnection', socket => {
    strangers.settle(socket)
    const address = plainAddress(socket.remoteAddress) ?? ''
    const fingerprint = peerFingerprint(socket)
    sockets.set(socket, fingerprint ?? '')
    socket.once('close', () => sockets.delete(socket))
    socket.on('error', error =>
      log.debug({ err: error, peer: socket.remoteAddress }, 'peer connection broke'),
    )
    // Before HTTP/2 begins, so that the server parses no byte of an unknown peer.
    if (fingerprint === undefined || nodeOf(fingerprint, address) === undefined) {
      log.warn({ peer: address, fingerprint }, 'connection refused: no report has this key and address')
      socket.destroy()
      return
    }
    const [oldest, ...others] = [...sockets].flatMap(([each, key]) => (key === fingerprint ? [each] : []))
    if (others.length >= connectionsOfPeer) oldest?.destroy()
    const session = performServerHandshake(socket, { settings: { maxConcurrentStreams: maxStreams } })
    serveSession(session, fingerprint, address)
  })
  server.on('tlsClientError', (error, socket) =>
    log.debug({ err: error, peer: socket.remoteAddress }, 'handshake failed'),
  )

  const serveSession = (session: ServerHttp2Session, fingerprint: string, address: string) => {
    session.on('error', error => log.debug({ err: error, fingerprint }, 'session broke'))
    keepAlive(session, { clock, looks: receiverDiesAfter })
    const settling: Settling = new Map()
    session.once('close', () => {
      for (const settled of settling.values()) settled.abort()
    })
    session.on('stream', (stream, headers) => {
      stream.on('error', error => log.debug({ err: error, fingerprint }, 'stream broke'))
      const { ':method': method, ':path': path = '' } = headers
      // Checked for each request: a connection must not outlive the report that allowed it.
      const nodeNow = () => nodeOf(fingerprint, address)
      const node = nodeNow()
      if (node === undefined) return answer(stream, 403)
      if (method === 'POST') return void agree(stream, node, path)
      if (method !== 'GET') return answer(stream, 405)
      const request = parseRequest(path)
      if (request === undefined) return answer(stream, 400)
      if (!mayRead(node, request.slot)) return answer(stream, 403)
      // A receiver that asks for the next generation has stored the previous one, or never will.
      settling.get(slotName(request.slot))?.abort()
      give(stream, request, node, nodeNow, settling).catch((error: unknown) => {
        // Receivers leave whenever a slot changes its primary; they report their failures themselves.
        log.debug({ err: error, node, slot: slotName(request.slot) }, 'cannot send a generation')
        // Reset, not ended: a partial generation must not look complete.
        if (!stream.destroyed) stream.destroy(error instanceof Error ? error : new Error(String(error)))
      })
    })
  }

  const agree = async (stream: ServerHttp2Stream, node: string, path: string): Promise<void> => {
    const request = parseGo(path)
    if (request === undefined) return answer(stream, 400)
    try {
      answer(stream, statusOfGo((await options.agree?.(node, request)) ?? 'Later'))
    } catch (error) {
      log.warn({ err: error, node, slot: slotName(request.slot) }, 'cannot answer the use of a grant')
      answer(stream, 500)
    }
  }

  const give = async (
    stream: ServerHttp2Stream,
    request: GenerationRequest,
    node: string,
    nodeNow: () => string | undefined,
    settling: Settling,
  ): Promise<void> => {
    const gone = new AbortController()
    const life = new AbortController()
    stream.once('close', () => {
      life.abort()
      // The stream also closes after a complete transfer.
      const complete = stream.writableFinished && stream.rstCode === constants.NGHTTP2_NO_ERROR
      if (!complete) gone.abort(new Error('the receiver has disconnected'))
    })
    showLife(stream, clock, signOfLifeMs, life.signal)
    if (!(await untilThere(request, gone.signal))) return answer(stream, 204)
    for (const until = clock.monotonic() + waitMs; isLater(node, request.slot) && clock.monotonic() < until; )
      await clock.sleep(laterMs, gone.signal)
    const endTurn = await turns.take({ node, namespace: request.slot.namespace }, gone.signal)
    try {
      life.abort()
      // Only now: during the wait, a newer generation may have replaced and removed the announced one.
      const next = newest(store, request)
      if (next === undefined) return answer(stream, 204)
      if (nodeNow() !== node || !mayRead(node, request.slot)) return answer(stream, 403)
      const send = { store, encode, clock, silenceMs, signal: gone.signal }
      // Before the first byte: the receiver's next request may arrive before this side notices the end of the transfer.
      const settled = claimFor(request.slot, settling)
      try {
        await sendGeneration(stream, request, next, send)
      } catch (error) {
        settled.abort()
        throw error
      }
      const settle = () => settled.abort()
      clock.sleep(settleMs, settled.signal).then(settle, settle)
    } finally {
      endTurn()
    }
  }

  /** Registers a receiver of the slot in the store until the returned controller fires. */
  const claimFor = (slot: SlotKey, settling: Settling): AbortController => {
    const name = slotName(slot)
    const settled = new AbortController()
    const release = store.announceReader(slot)
    settling.set(name, settled)
    const onSettled = () => {
      release()
      if (settling.get(name) === settled) settling.delete(name)
    }
    settled.signal.addEventListener('abort', onSettled, { once: true })
    return settled
  }

  /** Resolves with whether a newer generation exists, after at most the time that a request may wait. */
  const untilThere = async (request: GenerationRequest, gone: AbortSignal): Promise<boolean> => {
    const patience = new AbortController()
    const onGone = () => patience.abort()
    gone.addEventListener('abort', onGone, { once: true })
    clock.sleep(waitMs, patience.signal).then(onGone, () => {
      // The wait is over, or the receiver has gone.
    })
    try {
      while (newest(store, request) === undefined && !patience.signal.aborted)
        await announcements.wait(slotName(request.slot), patience.signal).catch(() => {})
      gone.throwIfAborted()
      return newest(store, request) !== undefined
    } finally {
      gone.removeEventListener('abort', onGone)
      patience.abort()
    }
  }

  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.listen({ port, ...(host === undefined ? {} : { host }) }, () => {
      server.off('error', reject)
      resolve()
    })
  })
  server.on('error', error => log.error({ err: error }, 'peer server failed'))

  return {
    port: (server.address() as AddressInfo).port,
    announce: slot => announcements.tell(slotName(slot)),
    close: () =>
      new Promise(resolve => {
        server.close(() => resolve())
        for (const socket of sockets.keys()) socket.destroy()
      }),
  }
}

function answer(stream: ServerHttp2Stream, status: number): void {
  if (stream.destroyed || stream.headersSent) return
  stream.respond({ ':status': status })
  stream.end()
}

/** Sends "102 Processing" to a waiting receiver at intervals, until the signal fires. */
function showLife(stream: ServerHttp2Stream, clock: Clock, everyMs: number, signal: AbortSignal): void {
  const show = async () => {
    for (;;) {
      await clock.sleep(everyMs, signal)
      if (!stream.headersSent && !stream.destroyed) stream.additionalHeaders({ ':status': 102 })
    }
  }
  show().catch(() => {
    // The answer has begun, or the receiver has gone.
  })
}
