import { spawn } from 'node:child_process'
import { createHash } from 'node:crypto'
import { closeSync, openSync } from 'node:fs'
import { mkdir, readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { exists } from '../build/cache.ts'
import {
  CGROUP_ROOT,
  type Cgroups,
  cgroupsOf,
  createMachineCgroups,
  detectCgroups,
  type MachineWeight,
  processesIn,
  removeCgroups,
  thaw,
} from './cgroups.ts'
import { PlaygroundError } from './failure.ts'
import type { MachinePaths } from './paths.ts'
import type { MachinePlan } from './plan.ts'
import { identify, isAlive, isGone, type ProcessIdentity, signalProcess, waitGone } from './process.ts'
import { renderInit, renderServices, type Service } from './render/init.ts'
import type { MachineProcesses } from './state.ts'

/** A machine: a process tree with namespaces, cgroups and a root file system of its own. */
export interface MachineInputs {
  /** Its share of the processors. */
  readonly weight: MachineWeight
  readonly plan: MachinePlan
  readonly paths: MachinePaths
  /** Root file system; never written to. */
  readonly rootfs: string
  /** Directories of this host that are bound into the machine, by their path inside. */
  readonly binds: Readonly<Record<string, string>>
  /** Directories on the machine's own disk, by their path inside. */
  readonly disks: Readonly<Record<string, string>>
  readonly hosts: Readonly<Record<string, string>>
  readonly sysctls: Readonly<Record<string, string>>
  readonly path: readonly string[]
  readonly services: readonly Service[]
}

/** Turns a machine on. Its network namespace must exist. It keeps the disk of its previous run, if any. */
export async function startMachine(inputs: MachineInputs, signal?: AbortSignal): Promise<MachineProcesses> {
  const { plan, paths } = inputs
  const disks = Object.entries(inputs.disks).map(([path, name]) => [path, paths.disk(name)] as const)
  for (const path of [
    paths.files,
    paths.logs,
    paths.upper,
    paths.work,
    paths.merged,
    ...disks.map(it => it[1]),
  ]) {
    await mkdir(path, { recursive: true })
  }
  const init = {
    hostname: plan.name,
    cgroups: await createMachineCgroups(await detectCgroups(), plan.label, inputs.weight),
    pidFile: paths.pidFile,
    overlay: { lower: inputs.rootfs, upper: paths.upper, work: paths.work, merged: paths.merged },
    binds: {
      ...inputs.binds,
      ...Object.fromEntries(disks),
      '/opt/understudy/machine': paths.files,
      '/var/log/understudy': paths.logs,
    },
    hosts: { localhost: '127.0.0.1', ...inputs.hosts },
    machineId: createHash('sha256').update(plan.label).digest('hex').slice(0, 32),
    sysctls: inputs.sysctls,
    path: inputs.path,
    services: inputs.services,
  }
  await writeFile(paths.init, renderInit(init))
  await writeFile(join(paths.files, 'services.sh'), renderServices(init))
  for (const path of [paths.pidFile, paths.booted]) await rm(path, { force: true })
  signal?.throwIfAborted()
  return launch(inputs)
}

/** Not interruptible: until both pids are known, the processes could not be ended. It takes milliseconds. */
async function launch({ plan, paths }: MachineInputs): Promise<MachineProcesses> {
  const logPath = join(paths.logs, 'machine.log')
  const log = openSync(logPath, 'a')
  const argv = [
    // `ip netns exec` would mount a new /sys, in which the cgroups are missing.
    ...[`--net=/run/netns/${plan.label}`, '--'],
    ...['unshare', '--mount', '--pid', '--fork', '--uts', '--kill-child', '--'],
    ...['bash', paths.init],
  ]
  const child = spawn('nsenter', argv, { stdio: ['ignore', log, log], detached: true, cwd: '/' })
  closeSync(log)
  const spawned = new Promise<void>((resolve, reject) => {
    child.on('spawn', resolve)
    child.on('error', reject)
  })
  await spawned
  child.unref()
  const outer = child.pid === undefined ? undefined : await identify(child.pid)
  const failed = (cause?: unknown): PlaygroundError =>
    new PlaygroundError(`machine ${plan.name} did not start`, { logPath, cause })
  if (outer === undefined) throw failed()
  for (let tries = 0; tries < 500; tries++) {
    if (!(await isAlive(outer))) throw failed()
    const pid = await readFile(paths.pidFile, 'utf8').catch(ignoreMissing)
    const init = pid === undefined ? undefined : await identify(Number(pid))
    if (init !== undefined && (await exists(paths.booted))) return { outer, init }
    await sleep(20)
  }
  await signalProcess(outer, 'SIGKILL')
  throw failed(new Error('its first process did not set it up within 10 s'))
}

function ignoreMissing(error: NodeJS.ErrnoException): undefined {
  if (error.code !== 'ENOENT') throw error
}

/**
 * Turns machines off as a power cut does: all their processes get SIGKILL, without a graceful shutdown. Finds processes
 * by the given record and by cgroup, so it also ends unrecorded ones. Resolves when all are gone and their cgroups are
 * removed.
 *
 * @param labels label of a machine, or the common prefix of several
 */
export async function powerOff(
  labels: string,
  recorded: readonly MachineProcesses[],
  others: ReadonlySet<number> = new Set(),
): Promise<void> {
  const cgroups = await detectCgroups()
  const known = recorded.flatMap(({ outer, init }) => [init, outer])
  await Promise.all(known.map(identity => signalProcess(identity, 'SIGKILL')))
  for (let tries = 0; tries < 200; tries++) {
    const paths = await cgroupsWithLabel(cgroups, labels)
    await thaw(paths)
    const rest = new Set([...(await processesIn(paths)), ...(tries === 0 ? others : [])])
    for (const pid of rest) await killIfStillThere(pid, labels, others)
    if (rest.size === 0 && (await allGone(known)) && (await tryRemove(paths))) return
    await sleep(50)
  }
  throw new PlaygroundError(`processes of ${labels} did not end`, {
    advice: `look at ${CGROUP_ROOT}/*/${labels}*/**/cgroup.procs; a process in state D waits for the kernel`,
  })
}

async function cgroupsWithLabel(cgroups: Cgroups, label: string): Promise<string[]> {
  const found = await cgroupsOf(cgroups, label)
  // `us-x-n1` is not `us-x-n10`; a prefix of several labels ends with `-`.
  return label.endsWith('-') ? found : found.filter(path => path.endsWith(`/${label}`))
}

/** The pid may have been reused since the list was made, so check its owner again before the kill. */
async function killIfStillThere(pid: number, label: string, others: ReadonlySet<number>): Promise<void> {
  const identity = await identify(pid)
  if (identity === undefined) return
  const cgroup = await readFile(`/proc/${pid}/cgroup`, 'utf8').catch((error: unknown) => {
    if (isGone(error)) return ''
    throw error
  })
  if (cgroup.includes(`/${label}`) || others.has(pid)) await signalProcess(identity, 'SIGKILL')
}

async function allGone(identities: readonly ProcessIdentity[]): Promise<boolean> {
  const gone = await Promise.all(identities.map(identity => waitGone(identity, 100)))
  return gone.every(Boolean)
}

/** Removal fails while the kernel still reaps the group's last process; the caller retries. */
async function tryRemove(paths: readonly string[]): Promise<boolean> {
  try {
    await removeCgroups(paths)
    return true
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EBUSY') return false
    throw error
  }
}
