import { fileURLToPath } from 'node:url'
import type { Cluster } from '../../playground/cluster.ts'
import { startLineProgram } from './line-program.ts'

/** A connection that broke, until its client was served again. Unix ms. */
export interface Break {
  readonly at: number
  /** How the client noticed: ECONNRESET, closed, timeout. */
  readonly error: string
  /** Connections that the client opened until it was served. */
  readonly attempts: number
  /** How each of them but the last failed. */
  readonly failed: readonly string[]
  readonly servedAt: number
}

/** Clients that keep their connection. */
export interface KeptClients {
  /** Breaks whose clients are served again, in the order in which that happened. */
  readonly breaks: readonly Break[]
  /** Clients that were served at least once. */
  readonly up: number
  forget(): void
  stop(): Promise<void>
}

export const keptClients = 10
/** Between an answer and the next request of the same client. */
const pauseMs = 20
/** An answer that takes longer is given up: it would be a time-out of a stock client. */
const limitMs = 5_000

const program = fileURLToPath(new URL('./kept-client.ts', import.meta.url))

/** Starts ten clients in a node's network that keep one connection each and ask the counter every 20 ms. */
export function startKeptClients(
  playground: Cluster,
  node: string,
  address: string,
  port: number,
): KeptClients {
  const numbers = [port, keptClients, pauseMs, limitMs].map(String)
  const argv = playground.argvInNetwork(node, [process.execPath, program, address, ...numbers])
  let up = 0
  const clients = startLineProgram('the kept clients', argv, line => {
    const told = JSON.parse(line) as Break | { readonly up: true }
    if (!('up' in told)) return told
    up += 1
    return undefined
  })
  return {
    get breaks() {
      return clients.lines
    },
    get up() {
      return up
    },
    forget: clients.forget,
    stop: clients.stop,
  }
}
