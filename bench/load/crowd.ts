import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { staticProgram } from '../../build/static-program.ts'
import type { Cluster } from '../../playground/cluster.ts'

export interface CrowdOrder {
  readonly address: string
  readonly port: number
  readonly connections: number
  /** Messages a second over all connections. */
  readonly perSecond: number
  /** Every so many ms one more connection is opened, and closed after its answer; 0: never. */
  readonly knockMs: number
}

/** A connect that took as long as one with a lost SYN. Unix ms. */
export interface SlowConnect {
  readonly at: number
  readonly ms: number
  /** True for an extra connection ("knock"), which sends one request and closes. */
  readonly knock: boolean
}

/** The clients' observations of the redis since the last `kill` (a life). Unix ms; 0: not yet. */
export interface Life {
  /** Clients that have a connection of this life. */
  readonly up: number
  /** The first answer of this life. */
  readonly first: number
  /** The lowest answer of this life: the number of the first message after the restored memory. */
  readonly value: number
  /** When the newest message that the restored memory contains was answered. */
  readonly saved: number
  /** The last answer of the previous life. */
  readonly last: number
  readonly issued: number
  readonly unsent: number
  readonly connected: number
  readonly refused: number
  /** Connects that timed out after a second. */
  readonly hung: number
  readonly knocked: number
  /** Connections given up because no answer came for five seconds. */
  readonly silent: number
  /** ms */
  readonly longest: number
  readonly slow: readonly SlowConnect[]
}

export interface Crowd {
  /** Call just before the kill: clients that connect from then on connect to the successor. */
  kill(): void
  tell(): Promise<Life>
  stop(): Promise<void>
}

/** Resolves with a function that starts clients in a node's network, in a process of their own; see crowd.c. */
export async function buildCrowd(): Promise<(cluster: Cluster, node: string, order: CrowdOrder) => Crowd> {
  const directory = join(import.meta.dirname, 'crowd')
  const program = await staticProgram({ name: 'crowd', directory })
  return (cluster, node, { address, port, connections, perSecond, knockMs }) => {
    const numbers = [port, connections, perSecond, knockMs].map(String)
    const [command = '', ...args] = cluster.argvInNetwork(node, [program, address, ...numbers])
    const child = spawn(command, args, { stdio: ['pipe', 'pipe', 'inherit'] })
    const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]()
    const ended = once(child, 'exit')
    return {
      kill() {
        child.stdin.write('kill\n')
      },
      async tell() {
        child.stdin.write('tell\n')
        const { value, done } = await lines.next()
        if (done === true) throw new Error('the clients have ended')
        return JSON.parse(value) as Life
      },
      async stop() {
        child.stdin.end()
        await ended
      },
    }
  }
}
