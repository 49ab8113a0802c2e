import { chmod, copyFile, mkdir, readlink, rm, rmdir, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { AgentError, isAgentError } from '../../api/agent-errors.ts'
import { holdDirectory } from '../../api/pod-contract.ts'
import type { Clock } from '../../kube/clock.ts'
import type { Random } from '../../kube/random.ts'
import { cgroupDirectory, parseCgroup } from '../container/cgroup.ts'
import { mountsOf } from '../container/container.ts'
import { descriptors } from '../container/descriptors.ts'
import { orderHold } from '../container/hold.ts'
import type { ProcessRef } from '../container/process.ts'
import { isSame, type ProcFs, readIfThere, refOf, unlessGone } from '../container/process.ts'
import type { PodTarget } from '../criu/memory-driver.ts'
import type { SentinelClient } from '../sentinel/client.ts'
import { removeAbandoned, removeIfUnused } from './abandoned-cgroups.ts'

export interface TestContainerOptions {
  readonly sentinel: SentinelClient
  readonly clock: Clock
  readonly random: Random
  readonly fs: ProcFs
  /** Directory on the host with `test-container` and `waker`. */
  readonly programs: string
  /** A directory with the same path on the host and here. */
  readonly directory: string
  readonly signal: AbortSignal
}

export interface TestContainerRequest {
  /** Name of its pod, and of its directory. */
  readonly role: string
  readonly command: readonly string[]
  /** Options of `test-container run`. */
  readonly options?: readonly string[]
  /** UID of its pod; random if absent. */
  readonly podUid?: string
  readonly container?: string
}

/** A container without a runtime, seen as a pod of one container. */
export interface TestContainer {
  readonly pod: PodTarget
  readonly init: ProcessRef
  /** Removes the cgroups of test containers whose agent was killed, once they are older than a test container becomes. */
  removeAbandoned(): Promise<void>
  /** Its output so far. */
  output(): Promise<string>
  /** How it ended, if by itself or at its deadline; undefined while it runs. */
  end(): Promise<string | undefined>
  stop(): Promise<void>
}

const port = 8080
const patienceMs = 20_000
/**
 * Longer than all checks that need the test container, if each uses up its own patience. On a slow node a shorter life would end
 * the test container during a check.
 */
const lifeMs = 300_000
const defaultContainer = 'app'

/** A server that counts, in a process, a thread and a child. */
export const serveCommand: readonly string[] = ['/bin/test-container', 'count', String(port)]

/** The same server in an understudy, not started. */
export const holdCommandOf = (container: string): readonly string[] => [
  ...['/bin/waker', 'hold', '--dir', holdDirectory(container), '--'],
  ...serveCommand,
]
export const holdCommand = holdCommandOf(defaultContainer)

/**
 * Starts a container through the sentinel. It outlives this process, but not its deadline.
 *
 * @throws AgentError Unsupported with its output; nothing of it is left then.
 */
export async function startTestContainer(
  options: TestContainerOptions,
  request: TestContainerRequest,
): Promise<TestContainer> {
  const { sentinel, clock, random, fs, programs, directory, signal } = options
  const { role, container = defaultContainer } = request
  const id = Buffer.from(random.bytes(16)).toString('hex')
  const uid = request.podUid ?? `cell-${id.slice(0, 8)}`
  const root = join(directory, role)
  const lower = join(root, 'lower')
  const log = join(root, 'output')
  const pidFile = join(root, 'pid')
  await writeImage(lower, container, programs)

  const giveUp = new AbortController()
  let failure: string | undefined
  const command = [
    ...[join(programs, 'test-container'), 'run', '--dir', root, '--pid-file', pidFile],
    ...['--cgroup', `cells/pod${uid}/${id}`, ...(request.options ?? []), '--', ...request.command],
  ]
  const program = { target: await refOf(fs, fs.host), command, log }
  const ended = untilEnded(sentinel, program, giveUp.signal).then(how => {
    failure = how
  })
  let init: ProcessRef | undefined
  let groups: readonly string[] = []
  const stop = async () => {
    // Kills the first process alone: then the program around it ends by itself and removes its cgroups. This works even
    // if the sentinel that started the program is gone: otherwise it lives on until its deadline.
    if (init !== undefined) await sentinel.treeKill(init).catch(() => giveUp.abort())
    else giveUp.abort()
    await ended
    await removeGroups(clock, groups)
    await rm(root, { recursive: true, force: true })
  }
  const pod: PodTarget = {
    namespace: 'cells',
    name: role,
    uid,
    ip: '127.0.0.1',
    containers: [{ name: container, containerId: `cell://${id}`, imageId: 'cell' }],
    promoted: false,
  }
  try {
    const pid = await eventually(clock, signal, async () => {
      if (failure !== undefined) throw new AgentError('Unsupported', failure)
      return firstPid(await textOf(pidFile), role)
    })
    init = await refOf(fs, pid)
    groups = await groupsOf(fs, pid)
    // Before it executes the command, the first process is still our program, with rights that the command does not
    // have.
    await eventually(clock, signal, async () => {
      if (failure !== undefined) throw new AgentError('Unsupported', failure)
      const [program] = (await textOf(`${fs.proc}/${pid}/cmdline`)).split('\0')
      if (program !== request.command[0]) throw new Error(`${request.command[0]} does not run yet`)
    })
    if (request.command[1] === 'hold') await listening(options, pid, container)
    const first = init
    const end = async () => {
      // The first process exits a moment before the program around it reports how: an exiting process, or a zombie, has no root.
      const root = await unlessGone(readlink(`${fs.proc}/${pid}/root`))
      if (root === undefined || !(await isSame(fs, first))) await ended
      return failure
    }
    return {
      ...{ pod, init, stop, end },
      removeAbandoned: () => removeAbandoned(groups, clock.now() - lifeMs),
      output: () => textOf(log),
    }
  } catch (error) {
    await stop()
    throw error
  }
}

/** Writes the files that every container of a test container starts from. */
async function writeImage(lower: string, container: string, programs: string): Promise<void> {
  await mkdir(join(lower, 'bin'), { recursive: true })
  await mkdir(join(lower, holdDirectory(container)), { recursive: true })
  // Writable for any user of the container, like an emptyDir.
  await chmod(join(lower, holdDirectory(container)), 0o777)
  // A file of the image that nothing needs.
  await writeFile(join(lower, 'bin', 'removed'), '')
  for (const name of ['test-container', 'waker'])
    await copyFile(join(programs, name), join(lower, 'bin', name))
}

/** Runs the program of a test container. @returns how it ended, with the end of its output */
async function untilEnded(
  sentinel: SentinelClient,
  program: { readonly target: ProcessRef; readonly command: readonly string[]; readonly log: string },
  signal: AbortSignal,
): Promise<string> {
  const { target, command, log } = program
  try {
    const end = await sentinel.spawn(
      {
        target,
        namespaces: 'keep',
        rights: 'Everything',
        cgroup: 'stay',
        deadlineMs: lifeMs,
        log,
        files: [],
        arguments: command,
      },
      signal,
    )
    const said = (await textOf(log)).trim().slice(-300)
    const how = end.expired
      ? `was ended after ${lifeMs / 1e3} s, its limit`
      : `ended with ${end.code ?? `signal ${end.signal}`}`
    return `${how}; ${said}`
  } catch (error) {
    return String(error)
  }
}

/** Waits until `hold` takes orders: on a busy machine a restore may come before it. */
const listening = ({ fs, clock, signal }: TestContainerOptions, pid: number, container: string) =>
  eventually(clock, signal, async () => {
    const hold = { root: `${fs.proc}/${pid}/root`, directory: holdDirectory(container), clock, signal }
    await orderHold(hold, { order: 'state' }).catch((error: unknown) => {
      throw isAgentError(error, 'HoldUnavailable') ? new Error(error.message) : error
    })
  })

async function groupsOf(fs: ProcFs, pid: number): Promise<string[]> {
  const mounts = await mountsOf(fs, fs.host)
  const memberships = parseCgroup(await textOf(`${fs.proc}/${pid}/cgroup`))
  return memberships.flatMap(membership => {
    const directory = cgroupDirectory(mounts, membership)
    // The cgroup of the sentinel may be the root of a hierarchy.
    return directory !== undefined && /(^|\/)cells\//.test(directory)
      ? [join(fs.proc, String(fs.host), 'root/sys/fs/cgroup', directory)]
      : []
  })
}

/**
 * Removes the cgroups if the program around the test container did not: it may have been killed, and without its sentinel its end
 * is not reported.
 */
async function removeGroups(clock: Clock, groups: readonly string[]): Promise<void> {
  for (const group of groups) {
    // Until all processes in it have been reaped.
    await eventually(clock, undefined, () => unlessGone(rmdir(group)))
    // Another container of the pod may still use it.
    await removeIfUnused(dirname(group))
  }
}

function firstPid(text: string, role: string): number {
  const pid = Number(text.trim())
  if (!Number.isSafeInteger(pid) || pid <= 0) throw new Error(`${role} has no pid yet`)
  return pid
}

/**
 * Asks the server of a test container, from inside its network namespace, until it answers: a starting server refuses.
 *
 * @throws AgentError RestoreFailed if it does not.
 */
export async function askTestContainer(
  options: TestContainerOptions,
  testContainer: TestContainer,
): Promise<string> {
  const { sentinel, programs, directory, clock, random, signal } = options
  return eventually(clock, signal, async () => {
    const log = join(directory, `answer-${Buffer.from(random.bytes(8)).toString('hex')}`)
    const end = await sentinel.spawn(
      {
        target: testContainer.init,
        namespaces: 'keep',
        rights: 'Everything',
        cgroup: 'stay',
        deadlineMs: patienceMs,
        log,
        files: [{ fd: descriptors.programs, path: programs, mode: 'd' }],
        arguments: [`/proc/self/fd/${descriptors.programs}/test-container`, 'ask', String(port)],
      },
      signal,
    )
    const text = (await textOf(log)).trim()
    await rm(log, { force: true })
    if (end.code !== 0) throw new Error(`${testContainer.pod.name} does not answer: ${text.slice(-200)}`)
    return text
  })
}

/** Tries until the attempt does not throw. An AgentError is final, and so is the end of patience. */
async function eventually<T>(
  clock: Clock,
  signal: AbortSignal | undefined,
  attempt: () => Promise<T>,
): Promise<T> {
  const end = clock.monotonic() + patienceMs
  for (;;) {
    try {
      return await attempt()
    } catch (error) {
      if (error instanceof AgentError) throw error
      if (clock.monotonic() > end) throw new AgentError('RestoreFailed', String(error), error)
      await clock.sleep(5, signal)
    }
  }
}

const textOf = async (path: string): Promise<string> => (await readIfThere(path)) ?? ''
