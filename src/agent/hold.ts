import { constants } from 'node:fs'
import { type FileHandle, lstat, open } from 'node:fs/promises'
import { connect } from 'node:net'
import type { Clock } from '../kube/clock.ts'
import { AgentError } from './errors.ts'

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

/** Bytes to send for an order. */
export function encodeOrder(order: HoldOrder): Buffer {
  switch (order.order) {
    case 'state':
    case 'release':
      return Buffer.from(`understudy/1 ${order.order}\n`)
    case 'adopt':
      return Buffer.from(`understudy/1 adopt ${order.pid}\n`)
    case 'end':
      return Buffer.from(`understudy/1 end ${order.code}\n`)
    case 'start': {
      if (order.entrypoint === undefined) return Buffer.from('understudy/1 start\n')
      const words = Buffer.from(order.entrypoint.map(word => `${word}\0`).join(''))
      return Buffer.concat([Buffer.from(`understudy/1 start ${words.length}\n`), words])
    }
  }
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

const answerMs = 5_000
const longestReply = 256

/**
 * Gives hold an order through the mount namespace of its container.
 *
 * Each step of the path is opened without following links: whatever runs in the container must not be able to lead an
 * order, or this process, to a socket of the host. That the listener is hold cannot be asked of the kernel from here
 * (Node.js does not tell SO_PEERCRED); before an adoption nothing but hold has ever run in the container.
 *
 * @throws AgentError HoldUnavailable when there is no socket, no listener or no answer, HoldRefused for `denied` and
 *   `malformed`; the signal's reason.
 */
export async function orderHold(options: HoldOptions, order: HoldOrder): Promise<HoldReply> {
  const { clock, signal } = options
  signal?.throwIfAborted()
  const directory = await openDirectory(options)
  const done = new AbortController()
  try {
    const path = `/proc/self/fd/${directory.fd}/hold.sock`
    if (!(await lstat(path)).isSocket()) throw new AgentError('HoldUnavailable', 'hold.sock is not a socket')
    const late = clock
      .sleep(answerMs, done.signal)
      .then(() => Promise.reject(new AgentError('HoldUnavailable', `no answer in ${answerMs} ms`)))
    late.catch(() => undefined)
    const until = signal === undefined ? done.signal : AbortSignal.any([done.signal, signal])
    const text = await Promise.race([exchange(path, encodeOrder(order), until), late])
    const reply = parseReply(text)
    if (reply === undefined) throw new AgentError('HoldUnavailable', 'not an answer of hold')
    if (reply.word === 'denied' || reply.word === 'malformed')
      throw new AgentError('HoldRefused', `${order.order}: ${reply.word}`)
    return reply
  } catch (error) {
    if (error instanceof AgentError || signal?.aborted) throw error
    throw new AgentError('HoldUnavailable', (error as NodeJS.ErrnoException).code, error)
  } finally {
    done.abort()
    await directory.close()
  }
}

async function openDirectory({ root, directory }: HoldOptions): Promise<FileHandle> {
  const flags = constants.O_RDONLY | constants.O_DIRECTORY
  try {
    // The root itself is a link of the kernel's, and may be followed.
    let handle = await open(root, flags)
    for (const name of directory.split('/').filter(part => part !== '')) {
      const parent = handle
      try {
        handle = await open(`/proc/self/fd/${parent.fd}/${name}`, flags | constants.O_NOFOLLOW)
      } finally {
        await parent.close()
      }
    }
    return handle
  } catch (error) {
    throw new AgentError('HoldUnavailable', `${directory}: ${(error as NodeJS.ErrnoException).code}`, error)
  }
}

function exchange(path: string, request: Buffer, signal: AbortSignal): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket = connect({ path, signal })
    let text = ''
    socket.setEncoding('latin1')
    socket.on('error', error => reject(signal.aborted ? signal.reason : error))
    socket.once('connect', () => socket.write(request))
    socket.on('data', (chunk: string) => {
      text += chunk
      if (text.length > longestReply) socket.destroy(new Error('an answer too long'))
    })
    socket.once('end', () => resolve(text))
    socket.once('close', () => reject(new Error('closed without an answer')))
  })
}
