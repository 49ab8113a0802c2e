import { readFile } from 'node:fs/promises'
import { connect, type Socket } from 'node:net'
import { AgentError } from '../../api/agent-errors.ts'
import { encodeLine, type Field, type Line, longestLine, parseLine } from './line.ts'

/** One connection to the sentinel. Once closed it stays closed, and its pending requests have failed. */
export interface SentinelConnection {
  /**
   * Sends a request and resolves with its only reply, however late.
   *
   * @throws AgentError SentinelLost if the connection ends before the reply: the request may have been executed.
   */
  request(verb: string, fields: readonly Field[]): Pending
  readonly closed: Promise<void>
  close(): void
}

export interface Pending {
  readonly id: number
  readonly reply: Promise<Line>
}

export interface ConnectionOptions {
  readonly path: string
  readonly onEvent: (line: Line) => void
  /** Called with input that is not a line of the protocol; the connection is closed after it. */
  readonly onMalformed: (text: string) => void
}

/** Connects to the sentinel. @throws AgentError SentinelUnavailable if no sentinel listens. */
export async function connectSentinel(options: ConnectionOptions): Promise<SentinelConnection> {
  const secret = await secretOf(options.path)
  const socket = await open(options.path)
  socket.write(secret, 'latin1')
  const waiting = new Map<number, { resolve: (line: Line) => void; reject: (error: unknown) => void }>()
  let lastId = 0
  let ended = false
  let rest = ''

  const malformed = (text: string) => {
    options.onMalformed(text.slice(0, 200))
    socket.destroy()
  }
  const take = (text: string) => {
    const line = parseLine(text)
    if (line === undefined) malformed(text)
    else if (line.id === undefined) options.onEvent(line)
    else {
      // A reply without a waiting caller belongs to a cancelled request; nothing is lost with it.
      waiting.get(line.id)?.resolve(line)
      waiting.delete(line.id)
    }
  }
  const closed = new Promise<void>(resolve => {
    socket.once('close', () => {
      ended = true
      for (const { reject } of waiting.values()) reject(new AgentError('SentinelLost'))
      waiting.clear()
      resolve()
    })
  })
  socket.on('error', () => undefined) // 'close' follows, and says all that matters
  // latin1 keeps bytes as they are: the protocol is ASCII with percent-encoding, and any other input is malformed.
  socket.setEncoding('latin1')
  socket.on('data', (chunk: string) => {
    const lines = (rest + chunk).split('\n')
    rest = lines.pop() ?? ''
    for (const text of lines) if (!socket.destroyed) take(text)
    if (rest.length >= longestLine) malformed(rest)
  })

  return {
    request(verb, fields) {
      lastId += 1
      const id = lastId
      const line = encodeLine(id, verb, fields)
      const reply = new Promise<Line>((resolve, reject) => {
        if (ended) reject(new AgentError('SentinelLost'))
        else waiting.set(id, { resolve, reject })
      })
      if (!ended) socket.write(line, 'latin1')
      return { id, reply }
    },
    closed,
    close: () => socket.destroy(),
  }
}

/**
 * Reads the line that a sentinel needs before it serves a client. A sentinel of an earlier version has none, and serves
 * at once. To it, a line left by an ended sentinel is malformed, and it refuses the line with an event that means
 * nothing here.
 */
async function secretOf(path: string): Promise<string> {
  try {
    return await readFile(`${path}.secret`, 'latin1')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return ''
    throw new AgentError('SentinelUnavailable', `${path}.secret`, error)
  }
}

function open(path: string): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const socket = connect({ path })
    const onError = (error: Error) => reject(new AgentError('SentinelUnavailable', undefined, error))
    socket.once('error', onError)
    socket.once('connect', () => {
      socket.off('error', onError)
      resolve(socket)
    })
  })
}
