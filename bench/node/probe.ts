import { join } from 'node:path'
import { staticProgram } from '../../build/static-program.ts'
import type { Cluster } from '../../playground/cluster.ts'
import { startLineProgram } from './line-program.ts'

/** One request of a client. Unix ms. */
export interface Probe {
  /** Start of the request. */
  readonly at: number
  readonly ms: number
  /** Host name (pod) of the answer, or `redis`; undefined without one. */
  readonly host: string | undefined
  /** The count in the answer, this request included, or the number of keys. */
  readonly count: number | undefined
  readonly error: string | undefined
}

export interface Prober {
  /** Finished probes, in the order in which they ended. */
  readonly probes: readonly Probe[]
  forget(): void
  /**
   * Resolves when the last `count` probes were all answered, the oldest of them begun at `since` or later.
   * @throws Error if that takes too long or the prober has ended; the signal's reason
   */
  steady(count: number, since: number, withinMs: number): Promise<void>
  stop(): Promise<void>
}

export const probeIntervalMs = 10
/** A probe times out after this. */
export const probeLimitMs = 1_000

/**
 * Starts a client on a node: one fresh connection every 10 ms to `address`, from the node's own network namespace.
 * @param signal ends waits, not the prober
 * @param protocol what it asks: the counter, or a redis for the number of its keys
 */
export async function startProber(
  playground: Cluster,
  node: string,
  address: string,
  port: number,
  signal: AbortSignal,
  protocol: 'http' | 'redis' = 'http',
): Promise<Prober> {
  const program = await staticProgram(
    { name: 'prober', directory: join(import.meta.dirname, 'prober') },
    { signal },
  )
  const argv = playground.argvInNetwork(node, [
    program,
    address,
    String(port),
    String(probeIntervalMs),
    String(probeLimitMs),
    protocol,
  ])
  const prober = startLineProgram('the prober', argv, line => JSON.parse(line) as Probe)
  return {
    get probes() {
      return prober.lines
    },
    forget: prober.forget,
    async steady(count, since, withinMs) {
      for (const end = performance.now() + withinMs; ; ) {
        signal.throwIfAborted()
        if (prober.failure !== undefined) throw prober.failure
        const last = prober.lines.slice(-count)
        if (last.length === count && last.every(({ at, host }) => host !== undefined && at >= since)) return
        if (performance.now() > end)
          throw new Error(`no ${count} good answers in a row within ${withinMs} ms`)
        await new Promise(resolve => setTimeout(resolve, 50))
      }
    },
    stop: prober.stop,
  }
}
