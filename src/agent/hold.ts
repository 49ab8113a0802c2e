import type { Clock } from '../kube/clock.ts'
import { AgentError } from './errors.ts'
import { readInside } from './inside.ts'
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

/**
 * Bytes to send for an order.
 *
 * @param key of the file beside the socket; undefined: that of an earlier version, which knows of none.
 */
export function encodeOrder(order: HoldOrder, key?: string): Buffer {
  const head = key === undefined ? 'understudy/1' : `understudy/2 ${key}`
  const line = (...words: readonly (string | number)[]) => Buffer.from(`${[head, ...words].join(' ')}\n`)
  switch (order.order) {
    case 'state':
    case 'release':
      return line(order.order)
    case 'adopt':
    case 'wait':
    case 'kill':
      return line(order.order, order.pid)
    case 'end':
      return line('end', order.code)
    case 'start':
    case 'run': {
      const words = order.order === 'start' ? order.entrypoint : order.command
      if (words === undefined) return line('start')
      const payload = payloadOf(words)
      return Buffer.concat([line(order.order, payload.length), payload])
    }
  }
}

/**
 * A kubelet passes every other control character to a probe's command, and scripts have newlines, so these are sent as they
 * are. None has a meaning to hold, which counts bytes; and the sentinel, whose requests are lines, hears none of an order:
 * the socket is opened inside the container, and the sentinel closes a connection whose first line is not its secret.
 *
 * @throws AgentError HoldRefused for a word that would be two.
 */
function payloadOf(words: readonly string[]): Buffer {
  if (words.some(word => word.includes('\0'))) throw new AgentError('HoldRefused', 'a word with a NUL in it')
  return Buffer.from(words.map(word => `${word}\0`).join(''))
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

/** A key that changes more often than this is not that of a `hold` that starts. */
const tries = 2

/**
 * Gives hold an order through the mount namespace of its container.
 *
 * That the listener is hold cannot be asked of the kernel from here (Node.js does not tell SO_PEERCRED); before an adoption
 * nothing but hold has ever run in the container. Who listens there instead learns an order of its own container and what
 * its own directory holds.
 *
 * @throws AgentError HoldUnavailable when there is no socket, no listener or no answer, HoldRefused for `denied` and
 *   `malformed`; the signal's reason.
 */
export async function orderHold(options: HoldOptions, order: HoldOrder): Promise<HoldReply> {
  let key = await keyFor(order, options)
  for (let left = tries; ; left -= 1) {
    const text = await askSocket(
      { ...options, socket: 'hold.sock', failure: 'HoldUnavailable' },
      encodeOrder(order, key),
    )
    const reply = parseReply(text)
    if (reply === undefined) throw new AgentError('HoldUnavailable', 'not an answer of hold')
    if (reply.word !== 'denied' && reply.word !== 'malformed') return reply
    // One that has just started listens for a moment before its key is there.
    const now = await keyFor(order, options)
    if (now === key || left === 1) throw new AgentError('HoldRefused', `${order.order}: ${reply.word}`)
    key = now
  }
}

const keyLength = 32

/** What stands beside the socket; undefined: nothing, as with a `hold` of an earlier version, or for what needs none. */
async function keyFor(order: HoldOrder, { root, directory }: HoldOptions): Promise<string | undefined> {
  if (order.order === 'state') return undefined
  try {
    const key = (await readInside(root, `${directory}/hold.key`, keyLength))?.toString('latin1')
    return key !== undefined && /^[0-9a-f]+$/.test(key) ? key : undefined
  } catch (error) {
    throw new AgentError('HoldUnavailable', `hold.key: ${(error as NodeJS.ErrnoException).code}`, error)
  }
}
