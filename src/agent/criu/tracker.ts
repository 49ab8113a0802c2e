/** The other side of native/tracker: a program beside a pod that makes the kernel record which pages are written. */
import { mkdtemp, rm } from 'node:fs/promises'
import { createServer, type Server, type Socket } from 'node:net'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { AgentError, isAgentError } from '../../api/agent-errors.ts'
import type { Clock } from '../../kube/clock.ts'
import { descriptors } from '../container/descriptors.ts'
import { isSame, type ProcessRef, type ProcFs, refOf } from '../container/process.ts'
import type { SentinelClient } from '../sentinel/client.ts'
import { endTree } from './tree.ts'

/** Most processes of a request, as in native/tracker/tracker.h. */
export const mostTracked = 32

export interface Prepared {
  /** The longest time for which a process was held. */
  readonly heldMicroseconds: number
  /** Why a process is not tracked, by its pid; all its pages count as written. */
  readonly refused: ReadonlyMap<number, string>
}

export interface Tracker {
  /**
   * Registers the memory of processes that is not registered yet; releases all others.
   * @throws AgentError TrackerFailed; the tracker is of no use then, and has to be closed.
   */
  prepare(processes: readonly ProcessRef[], signal: AbortSignal): Promise<Prepared>
  /** Kills it: the kernel records nothing more. */
  close(): Promise<void>
  /** False as long as it has a place among the programs of the sentinel. */
  hasEnded(): Promise<boolean>
}

/** Its processes are prepared again from the start once a day, or when the agent restarts. */
const lifeMs = 24 * 60 * 60 * 1000
const startMs = 10_000
const answerMs = 10_000

export interface TrackerDependencies {
  readonly sentinel: Pick<SentinelClient, 'spawnDetached' | 'treeKill'>
  readonly fs: ProcFs
  readonly clock: Clock
  /** Directory on the host with `nsrun` and `tracker`. */
  readonly programs: string
  /** A directory with the same path on the host and here. */
  readonly workDirectory: string
}

/**
 * Starts a tracker outside of all containers. It ends when this process does: the connection is closed then.
 * @throws AgentError TrackerFailed
 */
export async function startTracker(deps: TrackerDependencies, signal: AbortSignal): Promise<Tracker> {
  const { sentinel, fs, programs, workDirectory } = deps
  const directory = await mkdtemp(join(workDirectory, 'tracker-'))
  const server = createServer()
  const connected = firstConnection(server)
  connected.catch(() => undefined)
  let program: ProcessRef | undefined
  try {
    await listen(server, join(directory, 'track'))
    program = await sentinel.spawnDetached({
      target: await refOf(fs, fs.host),
      ...{ namespaces: 'keep', rights: 'Track', cgroup: 'stay', deadlineMs: lifeMs },
      log: join(directory, 'output'),
      files: [
        { fd: descriptors.programs, path: programs, mode: 'd' },
        { fd: descriptors.work, path: directory, mode: 'd' },
      ],
      arguments: [`/proc/self/fd/${descriptors.programs}/tracker`, 'serve'],
    })
    const socket = await within(connected, deps, startMs, signal)
    return trackerOn(deps, program, socket)
  } catch (error) {
    // A tracker that connects later would run on without a client.
    connected.then(
      socket => socket.destroy(),
      () => undefined,
    )
    if (program !== undefined) await kill(deps, program)
    signal.throwIfAborted()
    throw error instanceof AgentError ? error : failed(error)
  } finally {
    server.close()
    await rm(directory, { recursive: true, force: true })
  }
}

/** Also without the sentinel, it ends as soon as it sees its connection closed. */
async function kill({ sentinel }: TrackerDependencies, program: ProcessRef): Promise<void> {
  try {
    await endTree(sentinel, program)
  } catch (error) {
    if (!isAgentError(error)) throw error
  }
}

const failed = (cause: unknown): AgentError =>
  new AgentError('TrackerFailed', cause instanceof Error ? cause.message : String(cause), cause)

function listen(server: Server, path: string): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', reject)
    server.listen(path, () => resolve())
  })
}

function firstConnection(server: Server): Promise<Socket> {
  return new Promise((resolve, reject) => {
    server.once('connection', resolve)
    server.once('error', reject)
  })
}

async function within<T>(
  work: Promise<T>,
  { clock }: Pick<TrackerDependencies, 'clock'>,
  milliseconds: number,
  signal: AbortSignal,
): Promise<T> {
  const done = new AbortController()
  const late = clock
    .sleep(milliseconds, AbortSignal.any([signal, done.signal]))
    .then(() => Promise.reject(failed(`no answer in ${milliseconds} ms`)))
  late.catch(() => undefined)
  try {
    return await Promise.race([work, late])
  } finally {
    done.abort()
  }
}

function trackerOn(deps: TrackerDependencies, program: ProcessRef, socket: Socket): Tracker {
  let waiting: { resolve(line: string): void; reject(error: Error): void } | undefined
  const end = (error: Error) => {
    waiting?.reject(error)
    waiting = undefined
  }
  createInterface({ input: socket }).on('line', line => {
    waiting?.resolve(line)
    waiting = undefined
  })
  socket.on('error', end)
  socket.on('close', () => end(new Error('it has ended')))
  return {
    async prepare(processes, signal) {
      const answer = new Promise<string>((resolve, reject) => {
        if (socket.destroyed) reject(new Error('it has ended'))
        waiting = { resolve, reject }
      })
      answer.catch(() => undefined)
      socket.write(`prepare ${processes.map(({ pid, start }) => `${pid}:${start}`).join(' ')}\n`)
      try {
        return parsePrepared(await within(answer, deps, answerMs, signal))
      } catch (error) {
        // An answer that comes later would be taken for that of the next request.
        socket.destroy()
        signal.throwIfAborted()
        throw error instanceof AgentError ? error : failed(error)
      }
    },
    async close() {
      socket.destroy()
      await kill(deps, program)
    },
    hasEnded: async () => !(await isSame(deps.fs, program)),
  }
}

/** @throws AgentError TrackerFailed for any other line. */
export function parsePrepared(line: string): Prepared {
  const [word, held = '', ...results] = line.split(' ')
  if (word !== 'prepared' || !/^\d+$/.test(held)) throw failed(`it answered ${line.slice(0, 80)}`)
  const refused = new Map<number, string>()
  for (const result of results) {
    const [, pid, how = ''] = /^(\d+)=(.*)$/.exec(result) ?? []
    if (pid === undefined) throw failed(`it answered ${line.slice(0, 80)}`)
    if (how !== 'yes') refused.set(Number(pid), how)
  }
  return { heldMicroseconds: Number(held), refused }
}
