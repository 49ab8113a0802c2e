import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import type { Log } from '../../kube/log.ts'

/** Listening sockets that outlive their processes until `end`. */
export interface Listening {
  end(): Promise<void>
}

/**
 * Keeps the listening TCP sockets of stopped processes open while other processes take their place. At `end`, the
 * connections in their queues move to the sockets that listen at the same addresses. Undefined: this node cannot.
 */
export type KeepListening = (pids: readonly number[], signal: AbortSignal) => Promise<Listening | undefined>

/** It reads the descriptors of one application, and asks the kernel twice. */
const patienceMs = 2_000

/** @param programs directory of the node's programs, with `keep-listening`. */
export function createKeepListening(programs: string, log: Pick<Log, 'warn'>): KeepListening {
  return async (pids, signal) => {
    signal.throwIfAborted()
    if (pids.length === 0) return undefined
    const keeper = spawn(`${programs}/keep-listening`, pids.map(String), { stdio: ['pipe', 'pipe', 'pipe'] })
    let says = ''
    keeper.stderr.on('data', (chunk: Buffer) => {
      says = (says + chunk.toString()).slice(0, 1_000)
    })
    const ended = once(keeper, 'close')
    ended.catch(() => undefined)
    const end = async () => {
      keeper.stdin.end()
      const late = setTimeout(() => keeper.kill('SIGKILL'), patienceMs)
      await ended.catch(() => undefined)
      clearTimeout(late)
    }
    // Its pipe breaks when it ends first.
    keeper.stdin.on('error', () => undefined)
    const first = once(createInterface({ input: keeper.stdout }), 'line', {
      signal: AbortSignal.any([signal, AbortSignal.timeout(patienceMs)]),
    })
    const kept = await Promise.race([
      first.then(
        () => true,
        () => false,
      ),
      ended.then(
        () => false,
        () => false,
      ),
    ])
    if (kept) return { end }
    await end()
    signal.throwIfAborted()
    log.warn({ says }, 'clients that connect while memory is replaced meet a closed port')
    return undefined
  }
}
