/** Prepares the node for the agent's work: programs, sentinel, generations, and the proof that they work. */

import { mkdir, readFile, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { isAgentError } from '../api/agent-errors.ts'
import type { DiskKey } from '../api/disk-half.ts'
import type { NodeCheck } from '../api/node-report.ts'
import { createGenerationDisk, type GenerationDisk } from '../checkpoint/disk/disk.ts'
import { createPageProgram, type PageProgram } from '../checkpoint/page-program.ts'
import { createGenerationStore, type GenerationStore } from '../checkpoint/store.ts'
import { createBackoff } from '../kube/backoff.ts'
import type { Clock } from '../kube/clock.ts'
import { messageOf } from '../kube/errors.ts'
import type { Log } from '../kube/log.ts'
import type { Random } from '../kube/random.ts'
import type { Machine } from '../slot/decide/machine-fit.ts'
import { hostProcFs as fs } from './container/process.ts'
import { type CloneRecords, createCloneRecords } from './criu/clone-records.ts'
import { createCopies } from './criu/copies.ts'
import { createMemoryDriver } from './criu/driver.ts'
import { createFiles } from './criu/files.ts'
import { createKeepListening } from './criu/keep-listening.ts'
import type { MemoryDriver } from './criu/memory-driver.ts'
import { createTracking } from './criu/tracking.ts'
import type { AgentOptions } from './options.ts'
import { runCanary } from './preflight/canary.ts'
import { thisMachine } from './preflight/machine.ts'
import { preflight } from './preflight/preflight.ts'
import { createSentinelClient, type SentinelClient } from './sentinel/client.ts'
import { programsInMemory } from './sentinel/in-memory.ts'
import { programsInUse } from './sentinel/in-use.ts'
import { type InstalledPrograms, installPrograms, pruneInstalled } from './sentinel/install.ts'
import { ensureSentinel, type Launched } from './sentinel/launch.ts'
import { loadDiskKey } from './storage/disk-key.ts'
import { createWorkDirectorySweep } from './storage/work-directory.ts'

export interface Node {
  readonly programs: InstalledPrograms
  readonly sentinel: SentinelClient
  readonly driver: MemoryDriver
  readonly store: GenerationStore
  readonly copyPages: PageProgram['copyPages']
  /** Records of the clones in pods. */
  readonly records: CloneRecords
  readonly volatile: string
  /** Where generations outlive a boot; undefined: they do not. */
  readonly disk: GenerationDisk | undefined
  /** See `loadDiskKey`. Undefined: the node uses no disk. */
  readonly diskKey: DiskKey | undefined
  /** Removes leftovers of earlier agents: their work directories, and programs that no process runs any more. */
  tidy(): Promise<void>
  /** The machine that restored memory finds here. */
  readonly machine: Machine
  /** Checks the abilities of the node, with a real dump and a real restore. */
  check(signal: AbortSignal): Promise<readonly NodeCheck[]>
  /** Ensures that a sentinel runs. @returns an id that distinguishes it from another one. */
  ensureSentinel(signal: AbortSignal): Promise<string>
  /** Like `ensureSentinel`, but accepts any sentinel that answers. */
  presentSentinel(signal: AbortSignal): Promise<string>
}

export interface NodeDependencies {
  readonly options: AgentOptions
  readonly clock: Clock
  readonly random: Random
  readonly log: Log
  /** Called to make room for so many bytes of a namespace in the tmpfs. */
  readonly relieve: (bytes: number, namespace: string) => Promise<void>
  /** See `StoreOptions`. */
  readonly digestByPage: () => boolean
  /** Called with the reason if large memory was restored at once, although the canary has shown a lazy restore. */
  readonly onNotLazy: (problem: string) => void
  /** Called with the missing parts after each failed try. */
  readonly onChecks: (checks: readonly NodeCheck[]) => void
}

/** Pauses between tries of something on the node that has failed. */
export const recheck = { initialMs: 5_000, maxMs: 300_000, jitter: 0.2 }
/** Beside the cgroup of the node's first process. */
export const sentinelCgroup = 'understudy'
const patience = { initialMs: 1_000, maxMs: 60_000, jitter: 0.2 }
/**
 * Size of the tmpfs by the budget. The spare part is for work files of restores, and for the writes of a dump until its
 * end is noticed.
 */
const spareShare = 1.25
/** Share of the budget; the other half of the spare part is for dumps. */
const copiesShare = (spareShare - 1) / 2

/**
 * Tries until the node has everything that work needs. Whether it can really move memory is another question: see
 * `check`.
 */
export async function enterNode(deps: NodeDependencies, signal: AbortSignal): Promise<Node> {
  const { clock, random, log, onChecks } = deps
  const pauses = createBackoff(patience, random)
  for (;;) {
    try {
      return await tryEnter(deps, signal)
    } catch (error) {
      signal.throwIfAborted()
      log.error({ err: error }, 'cannot prepare the node')
      onChecks([failedCheck('node', error)])
      await clock.sleep(pauses.next(), signal)
    }
  }
}

async function tryEnter(deps: NodeDependencies, signal: AbortSignal): Promise<Node> {
  const { options, clock, random, log, onNotLazy } = deps
  const { runDirectory, stateDirectory, memoryBudget } = options
  const memoryDirectory = join(runDirectory, 'memory')
  const socket = join(runDirectory, 'sentinel.sock')
  const installed = { onDisk: join(stateDirectory, 'bin'), inMemory: join(runDirectory, 'bin') }
  const install = { from: options.binaries, random }
  const onDisk = await installPrograms({ ...install, to: installed.onDisk })
  const programs = await programsInMemory(onDisk, { ...install, to: installed.inMemory, fs, log, signal })
  const sentinel = createSentinelClient({ path: socket, clock, log })
  const launch = (signal: AbortSignal): Promise<Launched> =>
    ensureSentinel({
      client: sentinel,
      clock,
      fs,
      programs: programs.directory,
      socket,
      logFile: join(runDirectory, 'sentinel.log'),
      memory: { directory: memoryDirectory, bytes: Math.ceil(memoryBudget * spareShare) },
      cgroup: sentinelCgroup,
      log,
      signal,
    })
  await launch(signal)
  const { comparePages, copyPages } = createPageProgram(programs.directory, log)
  const store = await openStore(deps, memoryDirectory, comparePages)
  const disk = await openDisk(options, clock, random)
  const workDirectory = join(memoryDirectory, '.work')
  await mkdir(workDirectory, { recursive: true, mode: 0o700 })
  const records = createCloneRecords(join(runDirectory, 'clones'))
  const machine = await thisMachine(programs.criuVersion)
  // False until this node has shown it; after a later failure, until the next agent.
  const lazily = { isPossible: false }
  const recorded = { isPossible: false }
  const isOnRequest = options.recordWrites === 'Moves'
  const copies = createCopies({
    bytes: Math.floor(memoryBudget * copiesShare),
    share: options.namespaceShare / 100,
    lend: store.lend,
  })
  const tools = { sentinel, fs, clock, log, programs: programs.directory, workDirectory }
  const driver = createMemoryDriver({
    ...tools,
    lazily: {
      isPossible: () => lazily.isPossible,
      failed: error => {
        lazily.isPossible = false
        onNotLazy(messageOf(error))
      },
    },
    ...(options.recordWrites !== 'Never' && {
      tracking: createTracking({ ...tools, isOnRequest, isPossible: () => recorded.isPossible }),
    }),
    ...{ machine, records, copies, copyPages },
    files: createFiles({ sentinel, programs: programs.directory, fs }),
    keepListening: createKeepListening(programs.directory, log),
    criuVersion: programs.criuVersion,
  })
  /** Whether pages in transit are read from this directory. */
  const isInUse = async (name: string): Promise<boolean> => {
    for (const uid of await records.list()) {
      const { pages } = (await records.load(uid)) ?? {}
      const paths = pages === undefined ? [] : [pages.directory, ...pages.servers.map(({ work }) => work)]
      if (paths.some(path => path.split('/').includes(name))) return true
    }
    return false
  }
  const sweepWork = createWorkDirectorySweep(workDirectory, () => clock.monotonic(), isInUse, copies.giveBack)
  return {
    machine,
    records,
    programs,
    sentinel,
    driver,
    store,
    copyPages,
    volatile: runDirectory,
    disk,
    // In the tmpfs of the generations. It is mounted by now.
    diskKey: disk && (await loadDiskKey(join(memoryDirectory, '.disk-key'), random)),
    async tidy() {
      await sweepWork()
      for (const to of Object.values(installed)) {
        const inUse = await programsInUse(fs, to)
        await pruneInstalled(to, [onDisk.directory, programs.directory, ...inUse])
      }
    },
    check: signal =>
      preflight({
        fs,
        sentinel,
        programs: programs.directory,
        criuVersion: programs.criuVersion,
        memoryDirectory,
        budget: memoryBudget,
        canary: async () => {
          const result = await runCanary({
            driver,
            sentinel,
            clock,
            random,
            fs,
            programs: programs.directory,
            directory: join(memoryDirectory, '.canary'),
            signal,
          })
          lazily.isPossible = result.lazyProblem === undefined
          recorded.isPossible = result.record.name === 'WriteProtect'
          return result
        },
        signal,
      }),
    ensureSentinel: async signal => String((await launch(signal)).hello.startedUnixNs),
    async presentSentinel(signal) {
      try {
        return String((await sentinel.hello(signal)).startedUnixNs)
      } catch (error) {
        if (!isAgentError(error, 'SentinelUnavailable', 'SentinelLost')) throw error
        return String((await launch(signal)).hello.startedUnixNs)
      }
    },
  }
}

async function openStore(
  { options, clock, random, log, relieve, digestByPage }: NodeDependencies,
  dir: string,
  comparePages: PageProgram['comparePages'],
): Promise<GenerationStore> {
  const store = createGenerationStore({
    dir,
    budget: options.memoryBudget,
    share: options.namespaceShare / 100,
    clock,
    random,
    relieve,
    digestByPage,
    comparePages,
  })
  for (const { name, reason } of await store.load()) log.warn({ name, reason }, 'unusable generation removed')
  return store
}

async function openDisk(
  { stateDirectory, diskBudget: budget, namespaceShare }: AgentOptions,
  clock: Clock,
  random: Random,
): Promise<GenerationDisk | undefined> {
  const dir = join(stateDirectory, 'generations')
  if (budget === 0) {
    // No code would look after its files.
    await rm(dir, { recursive: true, force: true })
    return undefined
  }
  const id = (await readFile('/proc/sys/kernel/random/boot_id', 'utf8')).trim()
  const uptime = () => Number(process.hrtime.bigint() / 1_000_000n)
  const share = namespaceShare / 100
  const disk = createGenerationDisk({ dir, budget, share, clock, random, boot: { id, uptime } })
  await disk.load()
  return disk
}

/** Converts an error to a check of the report. */
export function failedCheck(name: string, error: unknown): NodeCheck {
  if (isAgentError(error)) return { name, ok: false, message: error.message, cure: error.cure }
  const message = messageOf(error)
  return { name, ok: false, message, cure: "see the agent's log on this node" }
}
