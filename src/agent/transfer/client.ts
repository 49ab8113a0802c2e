/** Fetches generations from the agents of other nodes into this node's store. */
import { constants } from 'node:http2'
import { AgentError } from '../../api/agent-errors.ts'
import type { GoAnswer, GoRequest } from '../../api/grant.ts'
import type { SlotKey } from '../../api/slot-key.ts'
import { applyDelta } from '../../checkpoint/delta.ts'
import { isCheckpointError } from '../../checkpoint/errors.ts'
import { type Manifest, slotName } from '../../checkpoint/manifest.ts'
import type { GenerationStore, Stored } from '../../checkpoint/store.ts'
import { unlessAborted } from '../../kube/abort.ts'
import { type BackoffPolicy, createBackoff } from '../../kube/backoff.ts'
import type { Random } from '../../kube/random.ts'
import { type Answer, head, refuseUnless, watched } from './answer.ts'
import { createArrivals } from './arrivals.ts'
import { bodyOf, StreamBroken } from './body.ts'
import type { Apply } from './codec.ts'
import type { Peer } from './connection.ts'
import { formatGo, formatRequest, goAnswerOf, parseHead, type Version } from './protocol.ts'
import { type ReceivedGeneration, receiveGeneration } from './receive.ts'
import { createSessions, type SessionOptions } from './sessions.ts'
import { createWatchdog } from './watchdog.ts'

export interface PeerClientOptions extends SessionOptions {
  readonly store: Pick<GenerationStore, 'latest' | 'begin' | 'retain' | 'budget'>
  /** Default: applyDelta. */
  readonly apply?: Apply | undefined
  /**
   * Checks the origin in a manifest, and its proof, against the current Lease of the slot; undefined: it is correct.
   * Called before any received generation is kept. @throws CheckpointError BadManifest
   */
  readonly originFault: (manifest: Manifest) => string | undefined
  readonly random: Random
  /** Milliseconds without a sign of life after which an answer times out. Default 30 s. */
  readonly silenceMs?: number | undefined
  /** Backoff of `pull` after failures in a row. Default 50 ms to 5 s. */
  readonly backoff?: BackoffPolicy | undefined
  readonly onReceived?: ((received: ReceivedGeneration) => void) | undefined
}

export interface PullOptions {
  /** Called when a generation begins to arrive, and at once if one arrives already. */
  readonly onAnswer?: () => void
  /** It does not wait for one that arrives already if that is older. Without an epoch, the number counts. */
  readonly atLeast?: Partial<Version>
}

export interface PeerClient {
  /**
   * Waits until that peer has a newer generation of this slot than the store here, receives it, as the difference to
   * the newest one here if possible, and stores it.
   *
   * Throws a failure at once, for the caller to report. To retry, call it again: the next call first waits, longer
   * after each failure in a row, and then asks for the newest generation. After a corrupt generation, it asks for a
   * whole one.
   *
   * If a generation of the slot arrives from that peer already, it waits for that one, and throws what that fails with.
   * @param epoch of the slot's Lease: a later one is not accepted.
   * @throws AgentError Peer*, GenerationImplausible, CheckpointError, or the signal's reason
   */
  pull(slot: SlotKey, peer: Peer, epoch: number, signal: AbortSignal, options?: PullOptions): Promise<Stored>
  /**
   * Tells that peer to use a grant.
   * @param onSend called when the message may arrive from now on. Until then it certainly has not.
   * @throws AgentError Peer*, the signal's reason.
   */
  go(peer: Peer, request: GoRequest, signal: AbortSignal, onSend: () => void): Promise<GoAnswer>
  /**
   * Keeps a connection to that peer open, so that no later request waits for one. Ends with the connection.
   * @throws AgentError Peer*, the signal's reason.
   */
  reach(peer: Peer, signal: AbortSignal): Promise<void>
  close(): void
}

const defaultBackoff: BackoffPolicy = { initialMs: 50, maxMs: 5_000 }

/** Failures between this slot and this peer since the last success. */
interface Trouble {
  readonly delayMs: () => number
  nextDelayMs: number
  /** The difference did not produce the generation, so differences are off. */
  whole: boolean
}

export function createPeerClient(options: PeerClientOptions): PeerClient {
  const { store, apply = applyDelta, clock, random, silenceMs = 30_000, onReceived } = options
  const sessions = createSessions(options)
  const troubles = new Map<string, Trouble>()
  const arrivals = createArrivals(clock)

  const open = async (peer: Peer, { path, method = 'GET', onSend }: Question, signal: AbortSignal) => {
    const { session, endUse } = await sessions.use(peer, signal)
    try {
      signal.throwIfAborted()
      onSend?.()
      const headers = { ':path': path, ':method': method }
      return { stream: session.request(headers, { endStream: true }), endUse }
    } catch (error) {
      // The connection closed at this moment.
      endUse()
      throw new AgentError('PeerUnreachable', `${peer.address}: ${(error as Error).message}`, error)
    }
  }

  /** Sends a request and passes the answer's head to `use`; always destroys the stream afterwards. */
  const ask = async <T>(
    peer: Peer,
    question: Question,
    signal: AbortSignal,
    use: (answer: Answer) => Promise<T>,
  ): Promise<T> => {
    const { stream, endUse } = await open(peer, question, signal)
    const body = bodyOf(stream)
    let reason: unknown
    const end = (why: unknown) => {
      reason ??= why
      stream.close(constants.NGHTTP2_CANCEL)
    }
    const onAbort = () => end(signal.reason)
    signal.addEventListener('abort', onAbort, { once: true })
    const watchdog = createWatchdog({
      clock,
      ms: silenceMs,
      onSilence: () => end(new AgentError('PeerSilent', `${peer.address} sent nothing for ${silenceMs} ms`)),
    })
    if (signal.aborted) onAbort()
    try {
      const headers = await head(stream, watchdog)
      watchdog.rest()
      return await use({ body, headers, watchdog })
    } catch (error) {
      // If this side ended the stream, that reason counts; later errors only follow from it.
      if (reason !== undefined) throw reason
      throw error instanceof StreamBroken
        ? new AgentError('PeerUnreachable', `${peer.address}: ${error.message}`, error)
        : error
    } finally {
      watchdog.stop()
      signal.removeEventListener('abort', onAbort)
      end(new Error('over'))
      // Destroyed, not only closed: unread data would keep the stream and its connection open.
      stream.destroy()
      endUse()
    }
  }

  const pullOnce = (
    slot: SlotKey,
    peer: Peer,
    epoch: number,
    trouble: Trouble | undefined,
    signal: AbortSignal,
    onVersion: (version: Version) => Promise<void>,
  ) => {
    const ours = store.latest(slot)
    const after = ours && { epoch: ours.manifest.epoch, generation: ours.manifest.generation }
    const request = { slot, after, base: trouble?.whole ? undefined : after }
    return ask(peer, { path: formatRequest(request) }, signal, async ({ body, headers, watchdog }) => {
      const status = Number(headers[':status'])
      if (status === 204) return undefined
      refuseUnless(status === 200, status, peer)
      const answer = parseHead(headers)
      if (answer === undefined)
        throw new AgentError('PeerMalformed', `${peer.address}: the head of a generation`)
      await onVersion(answer.version)
      return receiveGeneration(watched(body, watchdog), {
        request,
        answer,
        epoch,
        ours,
        peer: peer.address,
        store,
        apply,
        originFault: options.originFault,
        clock,
        signal,
      })
    })
  }

  return {
    async pull(slot, peer, epoch, signal, { onAnswer, atLeast } = {}) {
      const from = { slot: slotName(slot), peer: peer.fingerprint }
      const joined = arrivals.join(from, atLeast, signal)
      if (joined !== undefined) {
        onAnswer?.()
        return joined
      }
      const key = `${from.peer} ${from.slot}`
      const trouble = troubles.get(key)
      if (trouble) await clock.sleep(trouble.nextDelayMs, signal)
      for (;;) {
        signal.throwIfAborted()
        const stored = await arrivals.begin(from, signal, async (signal, onVersion) => {
          try {
            const received = await pullOnce(slot, peer, epoch, trouble, signal, version => {
              onAnswer?.()
              return onVersion(version)
            })
            if (received === undefined) return undefined
            troubles.delete(key)
            onReceived?.(received)
            return received.stored
          } catch (error) {
            signal.throwIfAborted()
            troubles.set(key, after(trouble, error))
            throw error
          }
        })
        if (stored !== undefined) return stored
      }
    },
    go: (peer, request, signal, onSend) =>
      ask(peer, { path: formatGo(request), method: 'POST', onSend }, signal, async ({ headers }) => {
        const status = Number(headers[':status'])
        const answer = goAnswerOf(status)
        if (answer !== undefined) return answer
        // Another status comes before any judgement, from an agent that does not know this node, or no grants.
        refuseUnless(false, status, peer)
        return 'Later'
      }),
    async reach(peer, signal) {
      const { session, endUse } = await sessions.use(peer, signal)
      const closed = new Promise<void>(resolve => {
        if (session.destroyed) resolve()
        session.once('close', resolve)
      })
      await unlessAborted(closed, signal).finally(endUse)
    },
    close() {
      arrivals.close()
      sessions.close()
    },
  }

  function after(trouble: Trouble | undefined, error: unknown): Trouble {
    const { delayMs } = trouble ?? { delayMs: createBackoff(options.backoff ?? defaultBackoff, random).next }
    const isWrong = isCheckpointError(error, 'Corrupt', 'DeltaBaseMissing', 'BadManifest')
    return { delayMs, nextDelayMs: delayMs(), whole: isWrong || trouble?.whole === true }
  }
}

/** A request without a body. */
interface Question {
  readonly path: string
  readonly method?: 'GET' | 'POST'
  readonly onSend?: () => void
}
