import { copyFile, mkdir, readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { holdDirectory } from '../api/stage.ts'
import type { Manifest } from '../checkpoint/manifest.ts'
import type { Clock } from '../kube/clock.ts'
import type { Random } from '../kube/random.ts'
import { isGone, type ProcFs, refOf } from './discover/process.ts'
import type { LocatedPod, MemoryDriver, PodTarget } from './driver/memory-driver.ts'
import { AgentError } from './errors.ts'
import type { ProcessRef, SentinelClient } from './sentinel.ts'

export interface CanaryOptions {
  readonly driver: MemoryDriver
  readonly sentinel: SentinelClient
  readonly clock: Clock
  readonly random: Random
  readonly fs: ProcFs
  /** With `cell` and `waker`, on the host. */
  readonly programs: string
  /** A directory on the host, the same path here; emptied. */
  readonly directory: string
  readonly signal: AbortSignal
}

export interface CanaryResult {
  readonly dumpMs: number
  readonly frozenMs: number
  readonly restoreMs: number
  readonly thawMs: number
}

const port = 8080
const lifeMs = 60_000
const operationMs = 20_000
const container = 'canary'

/**
 * Saves the memory of a small server of several processes and threads and brings it back in another container, all of
 * it as it is done with pods. What a node says it can do (`criu check` passes where no socket can be dumped) proves
 * nothing; this does.
 *
 * @throws AgentError with what failed; whatever it started is gone then.
 */
export async function runCanary(options: CanaryOptions): Promise<CanaryResult> {
  const { driver, clock, directory, signal } = options
  await rm(directory, { recursive: true, force: true })
  const running: Cell[] = []
  try {
    const serve = ['/bin/cell', 'count', String(port)]
    const hold = ['/bin/waker', 'hold', '--dir', holdDirectory(container), '--', ...serve]
    const primary = await startCell(options, 'primary', serve, running)
    const understudy = await startCell(options, 'understudy', hold, running)
    await expectCount(options, primary, 1)
    await expectCount(options, primary, 2)

    const generation = join(directory, 'generation')
    await mkdir(generation, { recursive: true, mode: 0o700 })
    const begin = clock.monotonic()
    const dumped = await driver.dump(primary.located, generation, { deadlineMs: operationMs, signal })
    const afterDump = clock.monotonic()
    // Restored is the moment of the dump, not the primary as it is now.
    await expectCount(options, primary, 3)
    const beforeRestore = clock.monotonic()
    const stored = {
      dir: generation,
      manifest: canaryManifest(dumped),
      completedAt: afterDump,
      pipelineMs: 0,
    }
    const clone = await driver.restore(understudy.located, stored, { deadlineMs: operationMs, signal })
    const afterRestore = clock.monotonic()
    await driver.thaw(clone)
    const afterThaw = clock.monotonic()
    await expectCount(options, understudy, 3)
    await expectCount(options, understudy, 4)
    await driver.discard(clone)
    return {
      dumpMs: afterDump - begin,
      frozenMs: dumped.frozenSeconds * 1e3,
      restoreMs: afterRestore - beforeRestore,
      thawMs: afterThaw - afterRestore,
    }
  } finally {
    await Promise.all(running.map(it => it.stop()))
    await rm(directory, { recursive: true, force: true })
  }
}

interface Cell {
  readonly located: LocatedPod
  readonly init: ProcessRef
  stop(): Promise<void>
}

/** A container without a runtime, started through the sentinel: it outlives this process, but not its deadline. */
async function startCell(
  { driver, sentinel, clock, random, fs, programs, directory, signal }: CanaryOptions,
  role: string,
  command: readonly string[],
  running: Cell[],
): Promise<Cell> {
  const root = join(directory, role)
  const lower = join(root, 'lower')
  await mkdir(join(lower, 'bin'), { recursive: true })
  await mkdir(join(lower, holdDirectory(container)), { recursive: true })
  for (const name of ['cell', 'waker']) await copyFile(join(programs, name), join(lower, 'bin', name))
  const id = Buffer.from(random.bytes(16)).toString('hex')
  const uid = `canary-${id.slice(0, 8)}`
  const pidFile = join(root, 'pid')
  const host = await refOf(fs, fs.host)
  const giveUp = new AbortController()
  let failure: string | undefined
  const log = join(root, 'output')
  const ended = sentinel
    .spawn(
      {
        target: host,
        namespaces: 'keep',
        cgroup: 'stay',
        deadlineMs: lifeMs,
        log,
        files: [],
        arguments: [
          ...[join(programs, 'cell'), 'run', '--dir', root, '--pid-file', pidFile],
          ...['--cgroup', `canary/pod${uid}/${id}`, '--', ...command],
        ],
      },
      giveUp.signal,
    )
    .then(
      async end => {
        failure = `ended with ${end.code ?? `signal ${end.signal}`}; ${(await readIfThere(log)).trim().slice(-300)}`
      },
      (error: unknown) => {
        failure = String(error)
      },
    )
  let init: ProcessRef | undefined
  const stop = async () => {
    // Its first process alone: then the program around it ends by itself and takes its groups away.
    if (init !== undefined && failure === undefined) await sentinel.treeKill(init).catch(() => giveUp.abort())
    else giveUp.abort()
    await ended
  }
  try {
    init = await refOf(fs, await eventualPid(pidFile, clock, signal, () => failure))
    const pod: PodTarget = {
      namespace: 'canary',
      name: role,
      uid,
      ip: '127.0.0.1',
      containers: [{ name: container, containerId: `cell://${id}`, imageId: 'canary' }],
      promoted: false,
    }
    const located = await eventually(
      clock,
      signal,
      () => failure,
      () => driver.locate(pod, signal),
    )
    const cell = { located, init, stop }
    running.push(cell)
    return cell
  } catch (error) {
    await stop()
    throw new AgentError(
      'Unsupported',
      `a process in namespaces of its own did not start: ${failure ?? error}`,
      error,
    )
  }
}

async function eventualPid(
  path: string,
  clock: Clock,
  signal: AbortSignal,
  failure: () => string | undefined,
): Promise<number> {
  return eventually(clock, signal, failure, async () => {
    const pid = Number((await readIfThere(path)).trim())
    if (!Number.isSafeInteger(pid) || pid <= 0) throw new Error('no pid yet')
    return pid
  })
}

/** Until it does not throw any more; the cell's end and the deadline are the ends of patience. */
async function eventually<T>(
  clock: Clock,
  signal: AbortSignal,
  failure: () => string | undefined,
  attempt: () => Promise<T>,
): Promise<T> {
  const end = clock.monotonic() + operationMs
  for (;;) {
    try {
      return await attempt()
    } catch (error) {
      const why = failure()
      if (why !== undefined) throw new Error(why)
      if (clock.monotonic() > end) throw error
      await clock.sleep(5, signal)
    }
  }
}

/** Asks from inside the container's network namespace. */
async function expectCount(options: CanaryOptions, cell: Cell, expected: number): Promise<void> {
  const { sentinel, programs, directory, clock, signal } = options
  const log = join(directory, 'answer')
  const wanted = `${expected} ${expected} ${expected}`
  // A server that only starts refuses; a wrong number is final.
  const said = await eventually(
    clock,
    signal,
    () => undefined,
    async () => {
      await writeFile(log, '')
      const end = await sentinel.spawn(
        {
          target: cell.init,
          namespaces: 'keep',
          cgroup: 'stay',
          deadlineMs: operationMs,
          log,
          files: [{ fd: 200, path: programs, mode: 'd' }],
          arguments: ['/proc/self/fd/200/cell', 'ask', String(port)],
        },
        signal,
      )
      const text = (await readFile(log, 'utf8')).trim()
      if (end.code !== 0) throw new AgentError('RestoreFailed', `no answer: ${text.slice(-200)}`)
      return text
    },
  )
  if (said !== wanted) throw new AgentError('RestoreFailed', `it counts ${said} and not ${wanted}`)
}

function canaryManifest(dumped: Awaited<ReturnType<MemoryDriver['dump']>>): Manifest {
  return {
    ...dumped,
    version: 1,
    slot: { namespace: 'canary', set: 'canary', slot: 0, life: '00000000' },
    epoch: 1,
    generation: 1,
    source: { pod: 'canary', podUid: 'canary', node: 'canary' },
    restoreHash: 'canary',
    files: [],
    bytes: 0,
  }
}

async function readIfThere(path: string): Promise<string> {
  try {
    return await readFile(path, 'utf8')
  } catch (error) {
    if (isGone(error)) return ''
    throw error
  }
}
