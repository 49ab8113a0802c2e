import { AgentError } from '../../api/agent-errors.ts'
import type { Clock } from '../../kube/clock.ts'
import { readInside } from './inside.ts'
import { askSocket } from './socket.ts'

/** Answer of `hold`, the first process of an understudy's container. Pids are those of the container. */
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
  /** Runs beside the app; at least one word. */
  | { readonly order: 'run'; readonly command: readonly string[] }
  | { readonly order: 'wait'; readonly pid: number }
  | { readonly order: 'kill'; readonly pid: number }

/**
 * Encodes an order.
 *
 * @param key of the file beside the socket; undefined: none, as with a `hold` of an earlier version.
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
 * Encodes the words of a command. A kubelet passes every control character but NUL to a probe's command, and scripts
 * have newlines, so words are sent as they are. `hold` counts bytes and gives none of them a meaning. The sentinel,
 * whose requests are lines, cannot receive an order: the socket is opened inside the container, and the sentinel closes
 * a connection whose first line is not its secret.
 *
 * @throws AgentError HoldRefused for a word with a NUL, which would be two words.
 */
function payloadOf(words: readonly string[]): Buffer {
  if (words.some(word => word.includes('\0'))) throw new AgentError('HoldRefused', 'a word contains a NUL')
  return Buffer.from(words.map(word => `${word}\0`).join(''))
}

/** Parses a reply; undefined: not a whole reply of `hold`. */
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

/** A key that changes more often than this is not that of a starting `hold`. */
const tries = 2

/**
 * Gives `hold` an order through the mount namespace of its container.
 *
 * The agent cannot ask the kernel whether the listener is `hold`, as Node.js does not expose SO_PEERCRED. But before an
 * adoption no other program has ever run in the container. Another listener learns an order of its own container, and
 * the content of its own directory.
 *
 * @throws AgentError HoldUnavailable if there is no socket, no listener or no answer, HoldRefused for `denied` and
 * `malformed`; the signal's reason.
 */
export async function orderHold(options: HoldOptions, order: HoldOrder): Promise<HoldReply> {
  let key = await keyFor(order, options)
  for (let left = tries; ; left -= 1) {
    const text = await askSocket(
      { ...options, socket: 'hold.sock', failure: 'HoldUnavailable' },
      encodeOrder(order, key),
    )
    const reply = parseReply(text)
    if (reply === undefined) throw new AgentError('HoldUnavailable', 'not a reply of hold')
    if (reply.word !== 'denied' && reply.word !== 'malformed') return reply
    // A `hold` that has just started listens for a moment before its key exists.
    const now = await keyFor(order, options)
    if (now === key || left === 1) throw new AgentError('HoldRefused', `${order.order}: ${reply.word}`)
    key = now
  }
}

const keyLength = 32

/**
 * Reads the key beside the socket; undefined: none, as with a `hold` of an earlier version, or for an order without a
 * key.
 */
async function keyFor(order: HoldOrder, { root, directory }: HoldOptions): Promise<string | undefined> {
  if (order.order === 'state') return undefined
  try {
    const key = (await readInside(root, `${directory}/hold.key`, keyLength))?.toString('latin1')
    return key !== undefined && /^[0-9a-f]+$/.test(key) ? key : undefined
  } catch (error) {
    throw new AgentError('HoldUnavailable', `hold.key: ${(error as NodeJS.ErrnoException).code}`, error)
  }
}
