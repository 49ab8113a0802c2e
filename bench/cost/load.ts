import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { buffer, text } from 'node:stream/consumers'
import { staticProgram } from '../../build/static-program.ts'
import { valueBytes } from '../../zoo/redis.ts'
import { type Freeze, type Latencies, latenciesOf } from './latency.ts'

export interface Target {
  readonly host: string
  readonly port: number
  readonly keys: number
  /** Pid of the redis-server, as this machine sees it. */
  readonly pid: number
}

export interface Order {
  readonly perSecond: number
  readonly seconds: number
}

/** Result of an order. Latencies in ms. */
export interface Load extends Latencies {
  /** Answers per second while requests were sent. */
  readonly perSecond: number
  /** Duration of each stop of redis, ms. */
  readonly freezes: readonly number[]
}

/** Resolves with a function that loads a redis as ordered, with a client in a process of its own. */
export async function buildLoader(): Promise<
  (target: Target, order: Order, signal: AbortSignal) => Promise<Load>
> {
  const directory = join(import.meta.dirname, 'loader')
  const program = await staticProgram({ name: 'loader', directory })
  return async ({ host, port, keys, pid }, { perSecond, seconds }, signal) => {
    const numbers = [port, keys, valueBytes, perSecond, seconds, pid]
    const child = spawn(program, [host, ...numbers.map(String)], {
      stdio: ['ignore', 'pipe', 'pipe'],
      signal,
    })
    const ended = once(child, 'close')
    const [told, complaint, [code]] = await Promise.all([buffer(child.stdout), text(child.stderr), ended])
    if (code !== 0) throw new Error(`the load ended with ${code}: ${complaint.trim()}`)
    return loadOf(told, { perSecond, seconds })
  }
}

/** @param told standard output of loader.c */
function loadOf(told: Buffer, { perSecond, seconds }: Order): Load {
  const body = told.indexOf('\n') + 1
  const [count = 0, frozen = 0] = told.toString('latin1', 0, body).trim().split(' ').map(Number)
  const numbers = new Float64Array(new Uint8Array(told.subarray(body)).buffer)
  if (numbers.length !== count + 2 * frozen) throw new Error('the load program reported only a part')
  const requests = Array.from(numbers.subarray(0, count), (answered, request) => ({
    due: (request / perSecond) * 1_000,
    answered,
  }))
  const freezes = Array.from({ length: frozen }, (_, at): Freeze => {
    const [from = 0, to = 0] = numbers.subarray(count + 2 * at, count + 2 * at + 2)
    return { from, to }
  })
  return {
    perSecond: requests.filter(({ answered }) => answered <= seconds * 1_000).length / seconds,
    freezes: freezes.map(({ from, to }) => to - from),
    ...latenciesOf(requests, freezes),
  }
}
