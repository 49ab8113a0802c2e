import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import type { Clock } from '../../kube/clock.ts'
import { isKubeError } from '../../kube/errors.ts'
import type { Log } from '../../kube/log.ts'
import type { Inquiry } from '../observe/inquiry.ts'

/** The pod whose memory another pod has taken over; new connections to its address are redirected to that pod. */
export interface Predecessor {
  readonly namespace: string
  readonly name: string
  readonly uid: string
  readonly ip: string
}

/**
 * Ends connections that reach a successor through its dead predecessor. The predecessor's node redirects them through
 * the network of the dead pod, which vanishes with that pod. Neither side would notice: a client would send the same
 * again and again, for a quarter of an hour. So the successor's node ends them before that path is gone and once there
 * is a shorter one; each side sees that at once.
 */
export interface InheritedConnections {
  /** @param pid a process of the successor. */
  begin(pod: { readonly name: string }, pid: number, from: Predecessor): void
}

/** Ends the connections of a process's network with an address. @returns how many. */
export type Sever = (pid: number, address: string, signal: AbortSignal) => Promise<number>

export interface InheritedConnectionsOptions {
  readonly inquiry: Pick<Inquiry, 'isThere'>
  readonly sever: Sever
  readonly clock: Pick<Clock, 'sleep' | 'monotonic'>
  readonly log: Log
  /** Aborts all pending work. */
  readonly signal: AbortSignal
}

/** By then every node sends new connections to the successor directly: kube-proxy writes once a second. */
const directMs = 1_500
const lookMs = 300
/** A pod that is being deleted keeps its network for about this time. */
const lastsMs = 3_000
const patienceMs = 60_000

export function createInheritedConnections({
  inquiry,
  sever,
  clock,
  log,
  signal,
}: InheritedConnectionsOptions): InheritedConnections {
  const isThere = async (from: Predecessor): Promise<boolean> => {
    try {
      return await inquiry.isThere(from, signal)
    } catch (error) {
      // The next look asks again; until then the network may well exist.
      if (isKubeError(error)) return true
      throw error
    }
  }
  const part = async (pid: number, from: Predecessor): Promise<number> => {
    const begunAt = clock.monotonic()
    let ended = 0
    let goneAt: number | undefined
    for (;;) {
      await clock.sleep(lookMs, signal)
      const now = clock.monotonic()
      if (goneAt === undefined && !(await isThere(from))) goneAt = now
      // Again and again: a busy node may send connections there for longer, and the agent sees that pod's end a little
      // late.
      if (goneAt !== undefined || now - begunAt >= directMs) ended += await sever(pid, from.ip, signal)
      if (now - (goneAt ?? now) >= lastsMs || now - begunAt >= patienceMs) return ended
    }
  }
  return {
    begin({ name }, pid, from) {
      part(pid, from).then(
        ended => log.info({ pod: name, from: from.name, ended }, 'closed connections through a dead pod'),
        (error: unknown) => {
          if (!signal.aborted)
            log.warn({ err: error, pod: name }, 'connections through a dead pod may hang once it is gone')
        },
      )
    },
  }
}

const run = promisify(execFile)
/** Timeout of `sever`, which asks the kernel and no other program. */
const severMs = 5_000

/** @param programs directory of the node's programs, with `sever`. */
export const createSever =
  (programs: string): Sever =>
  async (pid, address, signal) => {
    const { stdout } = await run(`${programs}/sever`, [String(pid), address], {
      killSignal: 'SIGKILL',
      signal: AbortSignal.any([signal, AbortSignal.timeout(severMs)]),
    })
    const ended = /^ended (\d+)$/m.exec(stdout)?.[1]
    if (ended === undefined) throw new Error(`sever says ${JSON.stringify(stdout)}`)
    return Number(ended)
  }
