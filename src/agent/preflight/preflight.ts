import { readdir, readFile, statfs } from 'node:fs/promises'
import { freemem, machine, release } from 'node:os'
import { type AgentErrorCode, isAgentError } from '../../api/agent-errors.ts'
import type { NodeCheck } from '../../api/node-report.ts'
import { mountsOf } from '../container/container.ts'
import { descriptors } from '../container/descriptors.ts'
import { type ProcFs, refOf, statusOf } from '../container/process.ts'
import { isTmpfs } from '../container/tmpfs.ts'
import { criuEnvironment, criuOptions, criuProgram } from '../criu/criu.ts'
import type { SentinelClient, SpawnEnd } from '../sentinel/client.ts'
import type { CanaryResult } from './canary.ts'
import type { RecordTechnique } from './record.ts'

export interface PreflightDependencies {
  readonly fs: ProcFs
  readonly sentinel: SentinelClient
  /** Installed programs, with `criu/`. */
  readonly programs: string
  readonly criuVersion: string
  /** Directory of the generations. */
  readonly memoryDirectory: string
  /** Limit of the generations there, bytes. */
  readonly budget: number
  readonly canary: () => Promise<CanaryResult>
  readonly signal: AbortSignal
}

/** Checks a node, in a fixed order. All checks run; a failed check names its cure. */
export async function preflight(deps: PreflightDependencies): Promise<readonly NodeCheck[]> {
  const checks: NodeCheck[] = [
    architecture(machine()),
    kernel(release()),
    criu(deps.criuVersion),
    await capabilities(deps.fs),
    await cgroups(deps.fs),
    await memory(deps),
    await sentinelCheck(deps),
    await openFiles(deps),
  ]
  // If a check has failed, the report names it, and not the failures that follow from it.
  const prevented = checks.filter(check => !check.ok).map(check => check.name)
  if (prevented.length > 0) return [...checks, notTried(prevented)]
  const facts = await kernelFacts(deps)
  return [...checks, facts, ...(facts.ok ? await canary(deps) : [notTried([facts.name])])]
}

const notTried = (prevented: readonly string[]): NodeCheck =>
  failed('canary', `not tried: ${prevented.join(', ')}`, 'fix the other failed checks first')

/** Not required of a node: without it a promotion of large memory takes longer. */
export const lazyRestore = (problem: string | undefined): NodeCheck =>
  passed(
    'lazy-restore',
    problem === undefined
      ? 'large memory is loaded while its app already runs'
      : `large memory is loaded before its app runs, about a second for each GB: ${problem}`,
  )

/**
 * Not required either: without it the agent ends the app that the kubelet starts in a dead primary, so that clients do
 * not reach it for long.
 */
const grave = (problem: string | undefined): NodeCheck =>
  passed(
    'grave',
    problem === undefined
      ? 'connections to a dead primary are redirected to its heir'
      : `connections to a dead primary fail until its Service has changed, and processes started in its place are ended: ${problem}; load the kernel modules nf_tables and nft_chain_nat`,
  )

/** Not required either: without it each checkpoint reads all memory while the pod is stopped. */
const record = (technique: RecordTechnique): NodeCheck =>
  passed(
    'record-of-writes',
    technique.name === 'None'
      ? `None: a checkpoint reads all memory of a pod: ${technique.why}`
      : `${technique.name}: with --record-writes, a checkpoint reads only memory that was written`,
  )

const passed = (name: string, message: string): NodeCheck => ({ name, ok: true, message })
const failed = (name: string, message: string, cure: string): NodeCheck => ({
  name,
  ok: false,
  message,
  cure,
})

export function architecture(name: string): NodeCheck {
  return name === 'x86_64' || name === 'aarch64'
    ? passed('architecture', name)
    : failed('architecture', name, 'use nodes of x86_64 or aarch64: the image has CRIU for these')
}

/**
 * pidfds in setns came with 5.8, time namespaces with 5.6, close_range with 5.9; 5.10 is the oldest maintained version.
 */
export function kernel(version: string): NodeCheck {
  const [major = 0, minor = 0] = version.split('.').map(part => Number.parseInt(part, 10))
  return major > 5 || (major === 5 && minor >= 10)
    ? passed('kernel', version)
    : failed('kernel', version, 'run Linux 5.10 or later on the node')
}

/** 4.1 reports success, and cannot dump a TCP socket on kernels since 6.15. */
export function criu(version: string): NodeCheck {
  const [major = 0, minor = 0] = version.split('.').map(part => Number.parseInt(part, 10))
  return major > 4 || (major === 4 && minor >= 2)
    ? passed('criu', version)
    : failed('criu', version, 'use the agent image of this release: it contains CRIU 4.2')
}

const needed = { CAP_KILL: 5, CAP_NET_ADMIN: 12, CAP_SYS_PTRACE: 19, CAP_SYS_ADMIN: 21 } as const
const CAP_SYS_RESOURCE = 24

async function capabilities(fs: ProcFs): Promise<NodeCheck> {
  const effective = BigInt(`0x${(await statusOf(fs, process.pid))?.fields.get('CapEff') ?? '0'}`)
  const has = (capability: number) => (effective & (1n << BigInt(capability))) !== 0n
  const missing = Object.entries(needed).flatMap(([name, number]) => (has(number) ? [] : [name]))
  if (missing.length > 0)
    return failed(
      'capabilities',
      `missing: ${missing.join(', ')}`,
      'run the agent privileged: securityContext.privileged, in a namespace that permits it',
    )
  return passed(
    'capabilities',
    has(CAP_SYS_RESOURCE)
      ? 'all'
      : 'all but CAP_SYS_RESOURCE: limits above the hard limit of the agent cannot be restored',
  )
}

async function cgroups(fs: ProcFs): Promise<NodeCheck> {
  const mounts = await mountsOf(fs, fs.host)
  const v1 = mounts.some(mount => mount.type === 'cgroup')
  const v2 = mounts.some(mount => mount.type === 'cgroup2')
  if (!v1 && !v2)
    return failed(
      'cgroups',
      'no hierarchy is mounted',
      'mount cgroup v2 at /sys/fs/cgroup, and run the agent with hostPID',
    )
  return passed('cgroups', v1 ? (v2 ? 'v1 and v2' : 'v1') : 'v2')
}

async function memory({ memoryDirectory, budget }: PreflightDependencies): Promise<NodeCheck> {
  if (!(await isTmpfs(memoryDirectory)))
    return failed(
      'memory',
      `${memoryDirectory} is not in memory`,
      'restart the agent: its sentinel mounts a tmpfs there; see /run/understudy/sentinel.log',
    )
  const { bsize, blocks, bavail } = await statfs(memoryDirectory)
  const size = blocks * bsize
  const free = Math.min(bavail * bsize, freemem())
  const mib = (bytes: number) => `${Math.round(bytes / 2 ** 20)} MiB`
  // Half of the budget is one more generation of all slots that this node keeps.
  if (free < Math.min(budget / 2, 64 * 2 ** 20))
    return failed(
      'memory',
      `${mib(free)} free of ${mib(size)}`,
      "free memory on the node, or lower the agent's memory budget",
    )
  return passed('memory', `${mib(free)} free of ${mib(size)}`)
}

async function sentinelCheck({ sentinel, signal }: PreflightDependencies): Promise<NodeCheck> {
  try {
    const { version, pid } = await sentinel.hello(signal)
    return passed('sentinel', `${version}, pid ${pid}`)
  } catch (error) {
    return fromError('sentinel', error)
  }
}

const enoughFiles = 1024

/** The sentinel's limit, which binds all programs that it starts: they get descriptors from 200 on. */
async function openFiles({ sentinel, fs, signal }: PreflightDependencies): Promise<NodeCheck> {
  try {
    const { pid } = await sentinel.hello(signal)
    const [, , hard = ''] =
      /^Max open files +(\S+) +(\S+)/m.exec(await readFile(`${fs.proc}/${pid}/limits`, 'utf8')) ?? []
    return Number(hard) < enoughFiles
      ? failed(
          'open-files',
          `the sentinel may open only ${hard} files`,
          `raise the hard limit of open files (LimitNOFILE) of the container runtime's service to ${enoughFiles} or more, and restart the sentinel`,
        )
      : passed('open-files', hard)
  } catch (error) {
    return fromError('open-files', error)
  }
}

/**
 * Lets CRIU examine the kernel once a boot, here, in the namespaces of the node. To do so CRIU runs programs, and in a
 * container those would be the container's. criu-shim.so stores the findings beside CRIU, outside all containers, and
 * ends a CRIU that would run without them.
 */
export async function kernelFacts({
  programs,
  sentinel,
  fs,
  signal,
}: Pick<PreflightDependencies, 'programs' | 'sentinel' | 'fs' | 'signal'>): Promise<NodeCheck> {
  const boot = (await readFile('/proc/sys/kernel/random/boot_id', 'utf8')).trim()
  const known = async () => (await readdir(programs)).includes(`criu.kdat.${boot}`)
  let end: Pick<SpawnEnd, 'code' | 'signal'> | undefined
  try {
    // Its verdict does not matter: the canary's counts.
    if (!(await known()))
      end = await sentinel.spawn(
        {
          target: await refOf(fs, fs.host),
          namespaces: 'keep',
          rights: 'Everything',
          cgroup: 'stay',
          deadlineMs: 30_000,
          log: '/dev/null',
          files: [{ fd: descriptors.programs, path: programs, mode: 'd' }],
          arguments: [...criuProgram, 'check', ...criuOptions],
          environment: [...criuEnvironment, 'UNDERSTUDY_KDAT=write'],
        },
        signal,
      )
  } catch (error) {
    return fromError('kernel-facts', error)
  }
  if (await known()) return passed('kernel-facts', 'known')
  return failed(
    'kernel-facts',
    `\`criu check\` did not write its cache of kernel features: ${howItEnded(end)}`,
    `make ${programs} writable on the node, and restart the agent`,
  )
}

const howItEnded = (end: Pick<SpawnEnd, 'code' | 'signal'> | undefined): string =>
  end === undefined
    ? 'it did not run'
    : end.signal === undefined
      ? `exit code ${end.code}`
      : `signal ${end.signal}`

async function canary(deps: PreflightDependencies): Promise<readonly NodeCheck[]> {
  try {
    const { dumpMs, frozenMs, restoreMs, thawMs, graveProblem, lazyProblem, ...rest } = await deps.canary()
    const ms = (value: number) => value.toFixed(1)
    return [
      passed(
        'canary',
        `saved in ${ms(dumpMs)} ms (stopped ${ms(frozenMs)}), restored in ${ms(restoreMs)}, thawed in ${ms(thawMs)}`,
      ),
      grave(graveProblem),
      record(rest.record),
      lazyRestore(lazyProblem),
    ]
  } catch (error) {
    deps.signal.throwIfAborted()
    const check = fromError('canary', error)
    return [isAgentError(error, ...ofContainers) ? { ...check, cure: ownContainers } : check]
  }
}

/** The cures of these errors are for authors of pods. The canary's containers have no author who could apply them. */
const ofContainers: readonly AgentErrorCode[] = [
  ...([
    'CredentialsExceed',
    'DumpFailed',
    'ImageDiffers',
    'LayerFailed',
    'RestoreFailed',
    'Unsupported',
  ] as const),
]
const ownContainers =
  "the containers of this test are the agent's own: find out what this node does to all containers (security modules, seccomp, limits, mounts), and report it with the agent's log"

function fromError(name: string, error: unknown): NodeCheck {
  if (isAgentError(error)) return failed(name, error.message, error.cure)
  return failed(name, String(error), 'report this with the log of the agent')
}
