/** Additions over HTTP, with the two kinds of connections. They never reject: an error is part of the history. */
import { connect, type Socket } from 'node:net'
import type { Answer, Call } from '../history.ts'
import type { Target } from './target.ts'

export type Result = Pick<Call, 'answer' | 'error'>

/** A client that has its own time limit; a call that takes longer counts as hung long before. */
const freshLimitMs = 10_000
/** A client with one connection gives it up sooner, because all of its requests wait for it. */
const keptLimitMs = 3_000

export function addFresh({ host, port }: Target, word: string): Promise<Result> {
  return new Promise(resolve => {
    let text = ''
    const socket = connect({ host, port, noDelay: true })
    const timer = setTimeout(() => over({ error: 'timeout' }), freshLimitMs)
    const over = (result: Result) => {
      clearTimeout(timer)
      socket.destroy()
      resolve(result)
    }
    socket.setEncoding('latin1')
    socket.on('connect', () => socket.write(`GET /?by=${word} HTTP/1.0\r\n\r\n`))
    socket.on('data', (data: string) => {
      text += data
    })
    socket.on('error', error => over({ error: codeOf(error) }))
    socket.on('close', () => over(resultOf(text)))
  })
}

export interface Kept {
  isFree(): boolean
  add(word: string): Promise<Result>
  end(): void
}

export function createKept({ host, port }: Target): Kept {
  let socket: Socket | undefined
  let isFree = true
  return {
    isFree: () => isFree,
    async add(word) {
      isFree = false
      socket ??= connect({ host, port, noDelay: true, keepAlive: true })
      const result = await request(socket, word)
      if (result.error !== undefined) {
        socket.destroy()
        socket = undefined
      }
      isFree = true
      return result
    },
    end: () => socket?.destroy(),
  }
}

function request(socket: Socket, word: string): Promise<Result> {
  return new Promise(resolve => {
    let text = ''
    const over = (result: Result) => {
      clearTimeout(timer)
      socket.removeAllListeners()
      // An error that comes later belongs to no request.
      socket.on('error', () => {})
      resolve(result)
    }
    const timer = setTimeout(() => over({ error: 'timeout' }), keptLimitMs)
    socket.removeAllListeners()
    socket.setEncoding('latin1')
    socket.on('data', (data: string) => {
      text += data
      if (text.endsWith('\n') && text.includes('\r\n\r\n{')) over(resultOf(text))
    })
    socket.on('error', error => over({ error: codeOf(error) }))
    socket.on('close', () => over({ error: 'closed' }))
    socket.write(`GET /?by=${word} HTTP/1.1\r\nHost: drill\r\n\r\n`)
  })
}

const codeOf = (error: NodeJS.ErrnoException): string => error.code ?? error.message

const resultOf = (text: string): Result => {
  const answer = answerIn(text)
  return answer === undefined ? { error: text === '' ? 'closed' : 'no answer' } : { answer }
}

/** Returns the counter's answer; undefined if the text has none. */
export function answerIn(text: string): Answer | undefined {
  const body = /^HTTP\/1\.1 200 [\s\S]*?\r\n\r\n(\{.*\})\n$/.exec(text)?.[1]
  if (body === undefined) return undefined
  const { count, runsIn, startedAt, after } = JSON.parse(body) as Readonly<Record<string, unknown>>
  if (typeof count !== 'number' || typeof startedAt !== 'number') return undefined
  if (typeof runsIn !== 'string' || typeof after !== 'string') return undefined
  return { count, pod: runsIn, startedAt, after }
}
