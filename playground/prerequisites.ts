import { mkdir, readFile, statfs, writeFile } from 'node:fs/promises'
import { release } from 'node:os'
import { dirname } from 'node:path'
import { cacheRoot, exists } from '../build/cache.ts'
import {
  clusterProblems,
  imageProblems,
  missingOf,
  packagesOf,
  programs,
  thisMachine,
} from '../build/machine.ts'
import type { Step } from '../src/terminal/progress.ts'
import { goEnvironment } from './artifacts/go.ts'
import { CommandError, run, runToEnd } from './exec.ts'
import { PlaygroundError } from './failure.ts'

/** Free space, bytes: a cold start fills Go's caches, a warm one only unpacks images on the nodes. */
const NEED_COLD = 10e9
const NEED_WARM = 3e9

/**
 * Checks that this machine can run a cluster, and installs missing programs where apt is available.
 *
 * @param cold whether anything has to be compiled
 * @throws PlaygroundError that lists everything that is missing, and the remedies, at once
 */
export async function checkPrerequisites(
  options: { readonly cold: boolean; readonly stateRoot: string },
  step: Step,
  signal: AbortSignal | undefined,
): Promise<void> {
  const machine = await thisMachine()
  const impossible = await clusterProblems(machine)
  // Images come minutes later: what prevents them is said now.
  const ofImages = impossible.length === 0 ? await imageProblems(machine) : []
  refuse([...impossible, ...ofImages])
  await ensurePrograms(Object.keys(programs), step, signal)
  const problems = [
    ...(await kernelProblems(signal)),
    ...(await limitProblems(step)),
    ...(await diskProblems(options)),
    ...(options.cold ? await goProblems(signal) : []),
  ]
  refuse(problems)
}

function refuse(problems: readonly string[]): void {
  if (problems.length === 0) return
  throw new PlaygroundError(
    `this machine cannot run a cluster yet:\n${problems.map(it => `- ${it}`).join('\n')}`,
  )
}

/**
 * Installs the given programs (keys of `programs`) that are missing.
 * @throws PlaygroundError if it may not
 */
async function ensurePrograms(
  names: readonly string[],
  step: Step,
  signal: AbortSignal | undefined,
): Promise<void> {
  const machine = await thisMachine()
  const missing: string[] = []
  for (const name of names) if (!(await machine.has(name))) missing.push(name)
  if (missing.length === 0) return
  if (!machine.isRoot || !(await machine.has('apt-get'))) refuse(await missingOf(machine, missing))
  const packages = packagesOf(missing)
  step.detail(`installing ${packages.join(' ')}`)
  const env = { DEBIAN_FRONTEND: 'noninteractive' }
  try {
    await run(['apt-get', '-qq', 'update'], { env, signal })
    await run(['apt-get', '-qq', '--yes', '--no-install-recommends', 'install', ...packages], { env, signal })
  } catch (error) {
    if (!(error instanceof CommandError)) throw error
    throw new PlaygroundError(`apt cannot install ${packages.join(' ')}`, {
      cause: error,
      advice: `install them by hand: apt-get install ${packages.join(' ')}`,
    })
  }
  step.detail(`installed ${packages.join(' ')}`)
}

/** Checks what etcd and the API server alone need: no root, no kernel features. */
export async function checkControlPlanePrerequisites(
  options: { readonly cold: boolean },
  step: Step,
  signal: AbortSignal | undefined,
): Promise<void> {
  if (process.platform !== 'linux') {
    throw new PlaygroundError(`the control plane for tests is built for Linux, this is ${process.platform}`)
  }
  await ensurePrograms(['openssl', 'setpriv'], step, signal)
  const problems = options.cold ? await goProblems(signal) : []
  if (problems.length > 0) throw new PlaygroundError(problems.join('\n'))
}

/** Tries each feature in a short-lived network namespace: a kernel's configuration may lie. */
async function kernelProblems(signal: AbortSignal | undefined): Promise<string[]> {
  const problems: string[] = []
  const load = (module: string): Promise<unknown> => runToEnd(['sh', '-c', `modprobe ${module}`], { signal })
  if (!/\boverlay$/m.test(await readFile('/proc/filesystems', 'utf8'))) {
    await load('overlay')
    if (!/\boverlay$/m.test(await readFile('/proc/filesystems', 'utf8'))) {
      problems.push(`kernel ${release()} has no overlay file system (CONFIG_OVERLAY_FS)`)
    }
  }
  if (!(await exists('/proc/sys/net/bridge'))) await load('br_netfilter')
  await load('nf_tables')
  const probe = [
    'ip link add us-p0 type veth peer name us-p1 || echo "no veth devices (CONFIG_VETH)"',
    'ip link add us-b0 type bridge || echo "no bridges (CONFIG_BRIDGE)"',
    '[ -e /proc/sys/net/bridge ] || echo "no netfilter for bridges (CONFIG_BRIDGE_NETFILTER)"',
  ]
  const end = await runToEnd(['unshare', '--net', '--mount', 'sh', '-c', probe.join('\n')], { signal })
  if (end.code !== 0) problems.push(`cannot create namespaces: ${end.stderr.trim()}`)
  for (const line of end.stdout.split('\n').filter(Boolean)) problems.push(`kernel ${release()} has ${line}`)
  if (
    !(await exists('/sys/fs/cgroup/cgroup.controllers')) &&
    !(await exists('/sys/fs/cgroup/memory/cgroup.procs'))
  ) {
    problems.push('no cgroup controllers are mounted below /sys/fs/cgroup')
  }
  return problems
}

/** Minimum values of limits that hold for root as a whole, enough for the machines of several clusters. */
const LIMITS: Readonly<Record<string, number>> = {
  // A kubelet, containerd or kube-proxy that gets no instance ends with "too many open files". The usual 128 is enough
  // for two clusters.
  'fs/inotify/max_user_instances': 4096,
  'fs/inotify/max_user_watches': 131_072,
}

/** Raises limits that are too low. They stay raised after `down`, because other programs may rely on them by then. */
async function limitProblems(step: Step): Promise<string[]> {
  const problems: string[] = []
  for (const [name, need] of Object.entries(LIMITS)) {
    const path = `/proc/sys/${name}`
    if (Number(await readFile(path, 'utf8')) >= need) continue
    try {
      await writeFile(path, String(need))
      step.detail(`raised ${name.replaceAll('/', '.')} to ${need}`)
    } catch (error) {
      problems.push(`${name.replaceAll('/', '.')} is below ${need} and cannot be raised: ${String(error)}`)
    }
  }
  return problems
}

/** nft is part of the nodes' root file system, so this probe runs after that is built. */
export async function checkNftables(rootfs: string, signal: AbortSignal | undefined): Promise<void> {
  const script =
    'add table ip probe; add chain ip probe c { type nat hook prerouting priority 0; }; add rule ip probe c fib daddr type local dnat to 127.0.0.1'
  const end = await runToEnd(['unshare', '--net', 'chroot', rootfs, 'nft', script], { signal })
  if (end.code === 0) return
  throw new PlaygroundError(`kernel ${release()} does not accept the nftables rules that kube-proxy needs`, {
    cause: new Error(end.stderr.trim()),
    advice: 'use a kernel with CONFIG_NF_TABLES, CONFIG_NFT_NAT and CONFIG_NFT_FIB_IPV4',
  })
}

async function diskProblems(options: {
  readonly cold: boolean
  readonly stateRoot: string
}): Promise<string[]> {
  const problems: string[] = []
  const places: [string, number][] = [
    [cacheRoot(), options.cold ? NEED_COLD : 0],
    [options.stateRoot, NEED_WARM],
  ]
  for (const [path, need] of places) {
    await mkdir(path, { recursive: true })
    const { bavail, bsize, type } = await statfs(path)
    const free = bavail * bsize
    if (free < need) {
      problems.push(
        `${path} has ${(free / 1e9).toFixed(1)} GB free, ${(need / 1e9).toFixed(0)} GB are needed`,
      )
    }
    if (path === options.stateRoot && type === OVERLAYFS_MAGIC) {
      problems.push(
        `${path} is on an overlay file system, which cannot hold nodes: set UNDERSTUDY_STATE to a directory on a disk`,
      )
    }
  }
  return problems
}

const OVERLAYFS_MAGIC = 0x794c7630

async function goProblems(signal: AbortSignal | undefined): Promise<string[]> {
  const advice = 'install Go 1.21 or newer (from go.dev/dl; it fetches the exact version it needs by itself)'
  try {
    const { code, stdout } = await runToEnd(['go', 'env', 'GOVERSION'], {
      env: goEnvironment(),
      cwd: dirname('/'),
      signal,
    })
    const version = /^go1\.(\d+)/.exec(stdout)?.[1]
    if (code === 0 && version !== undefined && Number(version) >= 21) return []
    return [`Go is too old (${stdout.trim()}): ${advice}`]
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error
    return [`Go is missing: ${advice}`]
  }
}
