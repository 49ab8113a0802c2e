import type { Clock } from '../kube/clock.ts'
import { AgentError } from './errors.ts'
import { askSocket } from './socket.ts'

/** What `hold`, the first process of an understudy's container, answered. Pids are those of the container. */
export interface HoldReply {
  readonly word: string
  readonly number: number
  readonly unixNs: bigint
}

export type HoldOrder =
  | { readonly order: 'state' }
  | { readonly order: 'start'; readonly entrypoint?: readonly string[] }
  | { readonly order: 'adopt'; readonly pid: number }
  | { readonly order: 'release' }
  | { readonly order: 'end'; readonly code: number }
  /** Beside the app; at least one word. */
  | { readonly order: 'run'; readonly command: readonly string[] }
  | { readonly order: 'wait'; readonly pid: number }
  | { readonly order: 'kill'; readonly pid: number }

/** Bytes to send for an order. */
export function encodeOrder(order: HoldOrder): Buffer {
  switch (order.order) {
    case 'state':
    case 'release':
      return Buffer.from(`understudy/1 ${order.order}\n`)
    case 'adopt':
    case 'wait':
    case 'kill':
      return Buffer.from(`understudy/1 ${order.order} ${order.pid}\n`)
    case 'end':
      return Buffer.from(`understudy/1 end ${order.code}\n`)
    case 'start': {
      if (order.entrypoint === undefined) return Buffer.from('understudy/1 start\n')
      return withWords('start', order.entrypoint)
    }
    case 'run':
      return withWords('run', order.command)
  }
}

function withWords(order: string, words: readonly string[]): Buffer {
  const payload = Buffer.from(words.map(word => `${word}\0`).join(''))
  return Buffer.concat([Buffer.from(`understudy/1 ${order} ${payload.length}\n`), payload])
}

/** undefined: not a whole reply of hold. */
export function parseReply(text: string): HoldReply | undefined {
  const match = /^understudy\/1 ([a-z]{1,16}) (0|[1-9]\d{0,9}) (\d{1,20})\n$/.exec(text)
  if (match === null) return undefined
  const [, word = '', number = '0', unixNs = '0'] = match
  return { word, number: Number(number), unixNs: BigInt(unixNs) }
}

export interface HoldOptions {
  /** Root of the container as seen from here: `/proc/PID/root`. */
  readonly root: string
  /** Directory of `hold.sock` in the container. */
  readonly directory: string
  readonly clock: Clock
  readonly signal?: AbortSignal
}

/**
 * Gives hold an order through the mount namespace of its container.
 *
 * That the listener is hold cannot be asked of the kernel from here
 * (Node.js does not tell SO_PEERCRED); before an adoption nothing but hold has ever run in the container.
 *
 * @throws AgentError HoldUnavailable when there is no socket, no listener or no answer, HoldRefused for `denied` and
 *   `malformed`; the signal's reason.
 */
export async function orderHold(options: HoldOptions, order: HoldOrder): Promise<HoldReply> {
  const text = await askSocket(
    { ...options, socket: 'hold.sock', failure: 'HoldUnavailable' },
    encodeOrder(order),
  )
  const reply = parseReply(text)
  if (reply === undefined) throw new AgentError('HoldUnavailable', 'not an answer of hold')
  if (reply.word === 'denied' || reply.word === 'malformed')
    throw new AgentError('HoldRefused', `${order.order}: ${reply.word}`)
  return reply
}
