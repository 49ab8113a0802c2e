import { spawn } from 'node:child_process'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import type { Latencies } from './latency.ts'

export interface Order {
  readonly perSecond: number
  readonly seconds: number
}

/** What came of an order. Latencies in ms. */
export interface Load extends Latencies {
  /** Answers per second while requests were sent. */
  readonly perSecond: number
  /** For how long redis stood still, each time, ms. */
  readonly freezes: readonly number[]
}

export interface Loader {
  run(order: Order): Promise<Load>
  stop(): Promise<void>
}

const program = fileURLToPath(new URL('./loader.ts', import.meta.url))

/** A client in a process of its own. @param pid of the redis-server, as this machine sees it. */
export function startLoader(host: string, keys: number, pid: number): Loader {
  const child = spawn(process.execPath, [program, host, String(keys), String(pid)], {
    stdio: ['pipe', 'pipe', 'inherit'],
  })
  const ended = new Promise<void>(resolve => {
    child.once('exit', () => resolve())
    child.once('error', () => resolve())
  })
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]()
  return {
    async run(order) {
      child.stdin.write(`${JSON.stringify(order)}\n`)
      const { value, done } = await lines.next()
      if (done === true) throw new Error('the loader has ended')
      return JSON.parse(String(value)) as Load
    },
    async stop() {
      child.stdin.end()
      await ended
    },
  }
}
