import { mkdir, readlink, statfs } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { AgentError, isAgentError } from '../../api/agent-errors.ts'
import type { Clock } from '../../kube/clock.ts'
import type { ProcessRef } from '../container/process.ts'
import { isGone, isSame, type ProcFs, refOf, statusOf } from '../container/process.ts'
import type { SentinelClient, SentinelHello } from './client.ts'
import { runOnHost } from './on-host.ts'

export interface LaunchOptions {
  readonly client: SentinelClient
  readonly clock: Clock
  readonly fs: ProcFs
  /** Installed programs: the same path in this container and on the host. */
  readonly programs: string
  readonly socket: string
  readonly logFile: string
  /** The tmpfs of the generations, which the sentinel mounts on the host, and its size. */
  readonly memory?: { readonly directory: string; readonly bytes: number }
  /** Name of the sentinel's cgroup, beside that of the node's first process. */
  readonly cgroup?: string
  readonly log: {
    info(fields: object, message: string): void
    warn(fields: object, message: string): void
  }
  readonly signal: AbortSignal
}

export interface Launched {
  readonly hello: SentinelHello
  /** True if it runs the program in `programs`. An older sentinel stays while it watches processes. */
  readonly current: boolean
  /** Directory of the installed programs that it runs from. */
  readonly programs: string
}

const patienceMs = 15_000

/**
 * Ensures that a sentinel runs on this node. Keeps a running one, unless it has other programs and is idle. Starts a
 * new one in the host's namespaces and in its own cgroup, so that it survives the end of this container and pod.
 *
 * @throws AgentError SentinelUnavailable with the sentinel's output if it does not start; the reason of the signal.
 */
export async function ensureSentinel(options: LaunchOptions): Promise<Launched> {
  const found = await findSentinel(options)
  if (found !== undefined) await resizeMemory(options)
  if (found?.current === true) return found
  if (found !== undefined) {
    const watches = await options.client.watches(options.signal)
    if (watches.length > 0) {
      options.log.warn(
        { version: found.hello.version, watches: watches.length },
        'a sentinel of another version guards pods; the agent replaces it once it guards none',
      )
      return found
    }
    await endSentinel(options, found.hello)
  }
  await mkdir(dirname(options.socket), { recursive: true, mode: 0o700 })
  const until = options.clock.monotonic() + patienceMs
  for (;;) {
    const said = await startSentinel(options)
    const started = await findSentinel(options)
    if (started !== undefined) {
      options.log.info({ version: started.hello.version, pid: started.hello.pid }, 'sentinel started')
      return started
    }
    // A sentinel that received SIGTERM keeps its lock until its last work is done.
    if (options.clock.monotonic() > until) throw new AgentError('SentinelUnavailable', said)
    await options.clock.sleep(100, options.signal)
  }
}

/**
 * Resizes the tmpfs if the running sentinel was started with another size: a second sentinel sets the new size and
 * exits.
 */
async function resizeMemory(options: LaunchOptions): Promise<void> {
  const { memory, log } = options
  if (memory === undefined) return
  const { blocks, bsize } = await statfs(memory.directory)
  if (blocks === Math.ceil(memory.bytes / bsize)) return
  const said = await startSentinel(options)
  const { blocks: now } = await statfs(memory.directory)
  const fields = { bytes: now * bsize, wanted: memory.bytes, said }
  if (now === Math.ceil(memory.bytes / bsize)) log.info(fields, 'tmpfs for generations resized')
  else log.warn(fields, 'cannot resize the tmpfs for generations')
}

async function findSentinel(options: LaunchOptions): Promise<Launched | undefined> {
  try {
    const hello = await options.client.hello(options.signal)
    const program = await readlink(`${options.fs.proc}/${hello.pid}/exe`)
    return {
      hello,
      current: program === join(options.programs, 'sentinel'),
      programs: dirname(program),
    }
  } catch (error) {
    // The sentinel ended between its answer and this readlink.
    if (isAgentError(error, 'SentinelUnavailable', 'SentinelLost') || isGone(error)) return undefined
    throw error
  }
}

/** True if the process runs; a zombie does not. */
async function runs(fs: ProcFs, process: ProcessRef): Promise<boolean> {
  return (await isSame(fs, process)) && (await statusOf(fs, process.pid))?.state !== 'Z'
}

/** Ends the sentinel by SIGTERM: it takes no new work and exits when its current work is done. */
async function endSentinel({ client, clock, fs, signal }: LaunchOptions, { pid }: SentinelHello) {
  const { start } = await refOf(fs, pid)
  client.close()
  process.kill(pid, 'SIGTERM')
  const until = clock.monotonic() + patienceMs
  while (clock.monotonic() < until) {
    if (!(await runs(fs, { pid, start }))) return
    await clock.sleep(20, signal)
  }
}

/** Resolves with the program's output when it has gone to the background or failed. */
async function startSentinel(options: LaunchOptions): Promise<string> {
  const { programs, socket, logFile, memory, cgroup, fs, signal } = options
  const parameters = [
    ...['--socket', socket, '--log', logFile, '--nsrun', join(programs, 'nsrun')],
    ...(cgroup === undefined ? [] : ['--cgroup', cgroup]),
    ...(memory === undefined
      ? []
      : ['--memory-dir', memory.directory, '--memory-bytes', String(memory.bytes)]),
  ]
  return runOnHost(programs, [join(programs, 'sentinel'), ...parameters], { fs, signal })
}
