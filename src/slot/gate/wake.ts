import { createConnection, type Socket } from 'node:net'
import { type Clock, systemClock } from '../../kube/clock.ts'
import { parseReply, replyBytesMax } from './reply.ts'

export interface WakeRequest {
  /** Address of the pod. */
  readonly host: string
  readonly port: number
  readonly token: string
  /** The kind that the pod is woken as. */
  readonly kind: 'primary' | 'hotbackup'
  /** One deadline for the connect and the reply together, in milliseconds. */
  readonly timeoutMs: number
  readonly signal?: AbortSignal
  readonly clock?: Clock
  readonly connect?: (target: { readonly host: string; readonly port: number }) => Socket
}

/**
 * Result of a wake-up. Only `woken` and `already` mean that the pod's containers start.
 *
 * - `denied`, `malformed`: the gate's own refusal.
 * - `refused`: no process listens; so for a gate that has been open for a while, or has not started yet.
 * - `unreachable`: no connection for any other reason.
 * - `timeout`: no whole reply within the deadline. The gate may or may not have opened.
 * - `garbled`: connected, but the reply was invalid or empty. The gate may or may not have opened.
 */
export type WakeReply =
  | { readonly type: 'woken' | 'already'; readonly atNs: bigint }
  | {
      readonly type: 'denied' | 'malformed' | 'refused' | 'unreachable' | 'timeout' | 'garbled'
      readonly detail: string
    }

/**
 * Sends one wake message and resolves with the result; idempotent. Network failures are results, not exceptions.
 *
 * @throws the signal's reason if it fires first.
 */
export async function wake(request: WakeRequest): Promise<WakeReply> {
  const { signal, timeoutMs, clock = systemClock } = request
  signal?.throwIfAborted()
  const over = new AbortController()
  // One signal for every end of the wait, so that neither the timer nor the socket outlives the call.
  const ended = signal === undefined ? over.signal : AbortSignal.any([signal, over.signal])
  const deadline = clock
    .sleep(timeoutMs, ended)
    .then((): WakeReply => ({ type: 'timeout', detail: `no reply within ${timeoutMs} ms` }))
  try {
    return await Promise.race([converse(request, ended), deadline])
  } finally {
    over.abort()
  }
}

function converse(request: WakeRequest, ended: AbortSignal): Promise<WakeReply> {
  const { host, port, token, kind, connect = createConnection } = request
  return new Promise((resolve, reject) => {
    const socket = connect({ host, port })
    let connected = false
    let received = ''
    const settle = (reply: WakeReply) => {
      ended.removeEventListener('abort', onEnded)
      socket.destroy()
      resolve(reply)
    }
    const onEnded = () => {
      socket.destroy()
      reject(ended.reason)
    }
    ended.addEventListener('abort', onEnded, { once: true })
    socket.on('error', error => settle(failureOf(error, connected)))
    socket.on('connect', () => {
      connected = true
      socket.setNoDelay(true)
      socket.write(`understudy/1 wake ${token} ${kind}\n`)
    })
    socket.on('data', chunk => {
      // One byte, one character: a reply with anything beyond ASCII matches no pattern.
      received += chunk.toString('latin1')
      if (received.includes('\n') || received.length >= replyBytesMax) settle(outcomeOf(received))
    })
    socket.on('close', () => settle(garbled(received, 'closed before the end of a reply')))
  })
}

function outcomeOf(received: string): WakeReply {
  const reply = parseReply(received)
  switch (reply?.verdict) {
    case undefined:
      return garbled(received, 'not a reply')
    case 'woken':
    case 'already':
      return { type: reply.verdict, atNs: reply.atNs }
    case 'denied':
      return { type: 'denied', detail: 'the gate holds the digest of another token' }
    case 'malformed':
      return { type: 'malformed', detail: 'the gate could not read the request, or had no room for it' }
  }
}

function garbled(received: string, problem: string): WakeReply {
  return { type: 'garbled', detail: `${problem}: ${JSON.stringify(received.slice(0, replyBytesMax))}` }
}

function failureOf(error: NodeJS.ErrnoException, connected: boolean): WakeReply {
  if (connected) return { type: 'garbled', detail: `connection lost before a reply: ${error.message}` }
  return { type: error.code === 'ECONNREFUSED' ? 'refused' : 'unreachable', detail: error.message }
}
