import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { projectVersion } from '../../images/project-version.ts'
import { staticProgram } from '../../native/static-program.ts'
import type { Cluster } from '../../playground/cluster.ts'

export interface CrowdOrder {
  readonly address: string
  readonly port: number
  readonly connections: number
  /** Messages of all connections together. */
  readonly perSecond: number
  /** One more connection is opened, and closed after its answer, once in so many ms; 0: never. */
  readonly knockMs: number
}

/** A connect that took as long as a lost SYN takes. Unix ms. */
export interface SlowConnect {
  readonly at: number
  readonly ms: number
  /** It is of one of those that only come to ask. */
  readonly knock: boolean
}

/** What the clients know of the life since the last `kill`. Unix ms; 0: not yet. */
export interface Life {
  /** Clients that have a connection of this life. */
  readonly up: number
  /** The first answer of this life. */
  readonly first: number
  /** The lowest answer of this life: the number of the first message after the memory that was brought back. */
  readonly value: number
  /** When the newest message was answered that this memory holds. */
  readonly saved: number
  /** The last answer of the life before. */
  readonly last: number
  readonly issued: number
  readonly unsent: number
  readonly connected: number
  readonly refused: number
  /** Connects that were given up after a second. */
  readonly hung: number
  readonly knocked: number
  /** Connections on which no answer came for five seconds: given up. */
  readonly silent: number
  /** ms */
  readonly longest: number
  readonly slow: readonly SlowConnect[]
}

export interface Crowd {
  /** To be called just before the kill: who connects from then on connects to the successor. */
  kill(): void
  tell(): Promise<Life>
  stop(): Promise<void>
}

/** Resolves with what starts clients in the network of a node, in a process of their own; see crowd.c. */
export async function buildCrowd(): Promise<(cluster: Cluster, node: string, order: CrowdOrder) => Crowd> {
  const directory = join(import.meta.dirname, 'crowd')
  const program = await staticProgram({ name: 'crowd', directory, version: await projectVersion() })
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
