import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { copyFile, cp, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect } from 'vitest'
import { buildWaker } from '../../../init-waker/build.ts'
import { start } from '../../../init-waker/testing/process.ts'
import { buildProgram } from '../../../native/build.ts'
import { criuBundle } from '../../../native/criu-bundle.ts'
import { eventually } from '../../../test/support/eventually.ts'
import { systemClock } from '../../kube/clock.ts'
import { systemRandom } from '../../kube/random.ts'
import { mountsOf } from '../container/container.ts'
import { below } from '../container/mountinfo.ts'
import type { PodsDirectory } from '../container/pods-directory.ts'
import { type ProcFs, refOf } from '../container/process.ts'
import { createCloneRecords } from '../criu/clone-records.ts'
import type { DriverDependencies } from '../criu/dependencies.ts'
import { createMemoryDriver } from '../criu/driver.ts'
import { createFiles } from '../criu/files.ts'
import { createKeepListening } from '../criu/keep-listening.ts'
import type { MemoryDriver } from '../criu/memory-driver.ts'
import { kernelFacts } from '../preflight/preflight.ts'
import { createSentinelClient, type SentinelClient } from '../sentinel/client.ts'
import { type InstalledPrograms, installPrograms } from '../sentinel/install.ts'
import { ensureSentinel, type Launched } from '../sentinel/launch.ts'

/** Reason why these tests cannot run on this machine; undefined if they can. */
export const cannotDump: string | undefined = ((): string | undefined => {
  if (process.platform !== 'linux' || process.arch !== 'x64') return '(needs Linux on x86_64)'
  if (process.getuid?.() !== 0) return '(needs root)'
  try {
    execFileSync('unshare', ['--mount', '--pid', '--fork', '--net', 'true'], { stdio: 'ignore' })
    return undefined
  } catch {
    return '(needs namespaces)'
  }
})()

/** This process stands for the host's first process, which may be out of reach. */
export const hostFs = { proc: '/proc', host: process.pid }

/** Starts a host with this machine's namespaces, in which only version 2 of cgroups is mounted. */
export async function hostWithCgroup2(): Promise<ProcFs & AsyncDisposable> {
  const mounts = 'umount --recursive --lazy /sys/fs/cgroup && mount -t cgroup2 cgroup2 /sys/fs/cgroup'
  // The process ends with the test, even if the test is killed.
  const script = `${mounts} && echo mounted && exec setpriv --pdeathsig KILL sleep infinity`
  const first = await start('unshare', ['--mount', 'sh', '-c', script])
  await eventually(() => expect(first.stdout(), first.stderr()).toBe('mounted\n'))
  return {
    proc: hostFs.proc,
    host: first.pid,
    [Symbol.asyncDispose]: () => first[Symbol.asyncDispose](),
  }
}

const silent = { info: () => undefined, warn: () => undefined }

/** A node with its sentinel and programs, and without Kubernetes. */
export interface TestNode {
  readonly directory: string
  readonly programs: InstalledPrograms
  readonly sentinel: SentinelClient
  readonly launched: Launched
  readonly driver: MemoryDriver
  readonly dependencies: DriverDependencies
  /** Connects another agent of the same node, as after a restart. */
  connect(): Pick<TestNode, 'sentinel' | 'driver' | 'dependencies'>
  launch(programs?: string): Promise<Launched>
  dispose(): Promise<void>
}

/** Returns the device of a directory that stands in for the kubelet's, and its path on that device. */
export async function podsDirectoryAt(directory: string): Promise<PodsDirectory> {
  const mounts = await mountsOf(hostFs, hostFs.host)
  const depth = ({ mountPoint }: { readonly mountPoint: string }) => mountPoint.length
  // The last of several mounts at one place covers the others.
  const mount = mounts
    .filter(({ mountPoint }) => below(mountPoint, directory) !== undefined)
    .sort((a, b) => depth(a) - depth(b))
    .at(-1)
  if (mount === undefined) throw new Error(`${directory} is on no filesystem`)
  const path = join(mount.root, below(mount.mountPoint, directory) ?? '')
  return { device: mount.device, root: path }
}

/** Ends the sentinel when the test is gone: a sentinel outlives its agents, so it would also outlive a killed test. */
function startGuard(pidFile: string, directory: string): ChildProcess {
  // The input reaches EOF whenever the test ends. Detached: a signal to the test's group must not end its guard.
  const script =
    'read -r _; pid=$(cat "$1") && kill "$pid" && while kill -0 "$pid"; do sleep 0.1; done; rm -rf "$2"'
  return spawn('sh', ['-c', script, 'guard', pidFile, directory], {
    detached: true,
    stdio: ['pipe', 'ignore', 'ignore'],
  })
}

/**
 * @param node process whose namespaces are those of the node. By default, the kubelet's pods directory is `pods` in the
 * directory of the node.
 */
export async function startTestNode(node: ProcFs = hostFs): Promise<TestNode> {
  // The store keeps memory in memory, and links require one filesystem.
  const directory = await mkdtemp('/dev/shm/understudy-test-')
  const host = { pods: await podsDirectoryAt(join(directory, 'pods')), ...node }
  const image = join(directory, 'image')
  await mkdir(image, { recursive: true })
  for (const name of ['nsrun', 'rootfs', 'sentinel', 'test-container', 'tracker'] as const)
    await copyFile(await buildProgram(name), join(image, name))
  await copyFile(await buildWaker(), join(image, 'waker'))
  await cp((await criuBundle()).directory, join(image, 'criu'), { recursive: true })
  const programs = await installPrograms({ from: image, to: join(directory, 'bin'), random: systemRandom })

  const socket = join(directory, 'run', 'sentinel.sock')
  const connectClient = () => createSentinelClient({ path: socket, clock: systemClock, log: silent })
  const sentinel = connectClient()
  const pidFile = join(directory, 'sentinel.pid')
  const launch = async (from = programs.directory) => {
    const done = await ensureSentinel({
      client: sentinel,
      clock: systemClock,
      fs: host,
      programs: from,
      socket,
      logFile: join(directory, 'run', 'sentinel.log'),
      log: silent,
      signal: AbortSignal.timeout(60_000),
    })
    await writeFile(pidFile, String((await sentinel.hello()).pid))
    return done
  }
  const guard = startGuard(pidFile, directory)
  const launched = await launch()
  const facts = await kernelFacts({
    ...{ sentinel, fs: host, programs: programs.directory },
    signal: AbortSignal.timeout(60_000),
  })
  if (!facts.ok) throw new Error(facts.message)
  const agentOf = (client: SentinelClient) => {
    const dependencies: DriverDependencies = {
      sentinel: client,
      fs: host,
      clock: systemClock,
      log: silent,
      programs: programs.directory,
      workDirectory: join(directory, 'work'),
      records: createCloneRecords(join(directory, 'clones')),
      files: createFiles({ sentinel: client, fs: host, programs: programs.directory }),
      keepListening: createKeepListening(programs.directory, silent),
      criuVersion: programs.criuVersion,
    }
    return { sentinel: client, dependencies, driver: createMemoryDriver(dependencies) }
  }
  return {
    directory,
    programs,
    launched,
    ...agentOf(sentinel),
    connect: () => agentOf(connectClient()),
    launch,
    async dispose() {
      guard.kill('SIGKILL')
      await once(guard, 'exit')
      const { pid } = await sentinel.hello()
      const { start } = await refOf(host, pid)
      sentinel.close()
      process.kill(pid, 'SIGTERM')
      while ((await refOf(host, pid).catch(() => undefined))?.start === start) await systemClock.sleep(10)
      await rm(directory, { recursive: true, force: true })
    },
  }
}
