import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import type { ListeningAddress } from '../../checkpoint/images/listening.ts'
import type { Log } from '../../kube/log.ts'
import type { ProcessRef } from '../container/process.ts'

/** Listening sockets that outlive their processes until `end`. */
export interface Listening {
  end(): Promise<void>
}

export interface KeepListening {
  /**
   * Keeps the listening TCP sockets of stopped processes open while other processes take their place. At `end`, the
   * connections in their queues move to the sockets that listen at the same addresses. `recent`: connections that have
   * waited for longer than a second are closed. Undefined: this node cannot.
   */
  keep(
    processes: readonly ProcessRef[],
    which: 'all' | 'recent',
    signal: AbortSignal,
  ): Promise<Listening | undefined>
  /** The same with new sockets in the network of a process, before any listens there. */
  open(
    process: ProcessRef,
    addresses: readonly ListeningAddress[],
    signal: AbortSignal,
  ): Promise<Listening | undefined>
}

/** It reads the descriptors of one application, and asks the kernel twice. */
const patienceMs = 2_000
/** The program's exit code on a kernel without what it needs. */
const cannot = 3
/** The program keeps no more. */
const mostSockets = 256

/** @param programs directory of the node's programs, with `keep-listening`. */
export function createKeepListening(programs: string, log: Pick<Log, 'warn'>): KeepListening {
  let isPossible = true
  const run = async (args: readonly string[], signal: AbortSignal): Promise<Listening | undefined> => {
    signal.throwIfAborted()
    if (!isPossible) return undefined
    try {
      const given = AbortSignal.any([signal, AbortSignal.timeout(patienceMs)])
      return await start(`${programs}/keep-listening`, args, given)
    } catch (error) {
      signal.throwIfAborted()
      isPossible = !(error instanceof Ended && error.code === cannot)
      log.warn({ err: error, again: isPossible }, 'clients that connect while memory is restored are refused')
      return undefined
    }
  }
  return {
    keep: async (processes, which, signal) =>
      processes.length === 0 ? undefined : run([which, ...processes.map(named)], signal),
    open: async (process, addresses, signal) =>
      addresses.length === 0
        ? undefined
        : run(['open', named(process), ...addresses.slice(0, mostSockets).map(written)], signal),
  }
}

const named = ({ pid, start }: ProcessRef): string => `${pid}:${start}`

const written = ({ address, port, onlyIPv6 }: ListeningAddress): string =>
  `${address}/${port}${onlyIPv6 ? '/6' : ''}`

class Ended extends Error {
  readonly code: unknown
  constructor(code: unknown) {
    super(`keep-listening ended with ${String(code)}`)
    this.code = code
  }
}

/** @throws Ended; Error if it does not start or does not answer in time */
async function start(program: string, args: readonly string[], signal: AbortSignal): Promise<Listening> {
  const keeper = spawn(program, args, { stdio: ['pipe', 'pipe', 'ignore'] })
  const ended: Promise<unknown[]> = once(keeper, 'close')
  ended.catch(() => undefined)
  // The pipe breaks if the program ends first.
  keeper.stdin.on('error', () => undefined)
  const end = async () => {
    keeper.stdin.end()
    const late = setTimeout(() => keeper.kill('SIGKILL'), patienceMs)
    await ended.catch(() => undefined)
    clearTimeout(late)
  }
  try {
    await Promise.race([
      once(createInterface({ input: keeper.stdout }), 'line', { signal }),
      ended.then(([code]) => Promise.reject(new Ended(code))),
    ])
    return { end }
  } catch (error) {
    keeper.kill('SIGKILL')
    await end()
    throw error
  }
}
