/**
 * Lazy restore: starts and ends the page servers that deliver memory to restored processes, and follows their progress.
 */
import { existsSync } from 'node:fs'
import { rm, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { AgentError, isAgentError } from '../../api/agent-errors.ts'
import type { ProcessRef } from '../container/process.ts'
import { isSame, type ProcFs, statusOf, unlessGone } from '../container/process.ts'
import { directoryFiles, lazyPagesArguments, lazyPagesEnvironment, lazyPagesSocket } from './criu.ts'
import type { DriverDependencies } from './dependencies.ts'
import { complaintsOf } from './explain.ts'
import type { Clone, PageServer } from './memory-driver.ts'
import { endTree } from './tree.ts'

/**
 * Size of a container's pages from which on the restore is lazy, bytes. To start a page server takes 35-60 ms; below
 * this size, a full copy takes about as long, and leaves nothing outstanding.
 */
export const lazyBytes = 64 * 1024 * 1024

const bytesPerMs = 10_000
/** Below the age at which a work directory counts as left behind. */
const longestMs = 3_000_000

/** Returns the milliseconds after which an application with missing pages is given up. */
export const pagesDeadlineMs = (bytes: number): number =>
  Math.min(30_000 + Math.ceil(bytes / bytesPerMs), longestMs)

/** The guardian kills the application first. If both ended at once, the application could run on with missing pages. */
const afterGuardianMs = 120_000
const startMs = 10_000
const lookMs = 50

export interface StartOptions {
  readonly container: string
  readonly hold: ProcessRef
  readonly images: string
  /** Work directory that the page server shares with the restore. */
  readonly work: string
  readonly bytes: number
  readonly signal: AbortSignal
}

/**
 * Starts the page server of a container, before the restore that asks for its pages. The server outlives this process.
 *
 * @throws AgentError PagesFailed; nothing of the server is left then.
 */
export async function startPageServer(
  deps: DriverDependencies,
  { container, hold, images, work, bytes, signal }: StartOptions,
): Promise<PageServer> {
  const { sentinel, fs, clock, programs } = deps
  const deadlineMs = pagesDeadlineMs(bytes)
  let server: ProcessRef
  try {
    server = await sentinel.spawnDetached({
      target: hold,
      // Its directories are detached mounts without a parent, as it reads images from another node. It also has no pid
      // in the container: otherwise, a file of /proc that the dumped processes had open could be restored as one of
      // this server.
      namespaces: 'apart',
      rights: 'Pages',
      cgroup: 'stay',
      deadlineMs: deadlineMs + afterGuardianMs,
      log: join(work, 'pages-output'),
      files: directoryFiles({ programs, images, work }),
      arguments: lazyPagesArguments,
      environment: lazyPagesEnvironment(deadlineMs),
    })
  } catch (error) {
    // The sentinel has too many processes already, or memory is short.
    if (isAgentError(error, 'SentinelRefused')) throw new AgentError('PagesFailed', error.detail, error)
    throw error
  }
  const started = { container, server, work }
  try {
    for (const end = clock.monotonic() + startMs; !(await exists(join(work, lazyPagesSocket))); ) {
      signal.throwIfAborted()
      if (!(await runs(fs, server)) || clock.monotonic() > end)
        throw new AgentError('PagesFailed', `container ${container}: ${await saidBy(work)}`)
      await clock.sleep(1)
    }
    return started
  } catch (error) {
    await endPageServer(deps, started)
    throw error
  }
}

const saidBy = async (work: string): Promise<string> =>
  (await complaintsOf(work, ['pages.log', 'pages-output'])) || 'it wrote no message'

/**
 * Kills a page server. Call only when no process runs, or will run, with the memory: missing pages would read as zeros.
 */
export const endPageServer = (
  { sentinel }: Pick<DriverDependencies, 'sentinel'>,
  { server }: PageServer,
): Promise<void> => endTree(sentinel, server)

/** A server whose sentinel was killed may stay a zombie for ever. */
async function runs(fs: ProcFs, process: ProcessRef): Promise<boolean> {
  return (await isSame(fs, process)) && (await statusOf(fs, process.pid))?.state !== 'Z'
}

type State = 'Coming' | 'Here' | 'Lost'

/** Reads the state files of native/criu-shim/pages.c; also works for an agent that did not start the server. */
async function stateOf({ fs }: Pick<DriverDependencies, 'fs'>, { server, work }: PageServer): Promise<State> {
  const isAlive = await runs(fs, server)
  if (await exists(join(work, 'arrived'))) return 'Here'
  // A server that was killed together with its guardian has left no state file.
  return !isAlive || (await exists(join(work, 'lost'))) ? 'Lost' : 'Coming'
}

/**
 * Throws if the server has lost the pages. Call it after the restore and before any restored process runs: from then
 * on, the guardian knows which process to kill.
 *
 * @throws AgentError PagesLost.
 */
export async function assertServing(deps: Pick<DriverDependencies, 'fs'>, server: PageServer): Promise<void> {
  if ((await stateOf(deps, server)) === 'Lost') throw await lost(server)
}

const lost = async ({ container, work }: PageServer): Promise<AgentError> =>
  new AgentError('PagesLost', `container ${container}: ${await saidBy(work)}`)

/** See MemoryDriver.settle. */
export async function settle(deps: DriverDependencies, clone: Clone, signal: AbortSignal): Promise<Clone> {
  const { pages, ...whole } = clone
  const toCome = async () => (await deps.records.load(clone.podUid))?.pages?.directory
  // The pages arrived earlier, and their directory was removed: that must not count as lost.
  if (pages === undefined || (await toCome()) !== pages.directory) return whole
  for (;;) {
    const states = await Promise.all(pages.servers.map(server => stateOf(deps, server)))
    const failed = pages.servers.find((_, at) => states[at] === 'Lost')
    if (failed !== undefined) {
      const error = await lost(failed)
      const wasThere = (await appsLive(deps, clone)) || hasLostPages(clone)
      await endClone(deps, clone)
      await dropPages(deps, clone)
      throw wasThere ? error : new AgentError('CloneLost')
    }
    if (states.every(state => state === 'Here')) break
    await deps.clock.sleep(lookMs, signal)
  }
  // A page server also ends successfully when the processes that wanted the pages are gone.
  if (!(await appsLive(deps, clone))) {
    await dropPages(deps, clone)
    throw new AgentError('CloneLost')
  }
  // Updates the record first: otherwise, a missing directory would count as lost pages.
  const record = await deps.records.load(clone.podUid)
  if (record?.pages?.directory === pages.directory) {
    const { pages: _, ...rest } = record
    await deps.records.save(rest)
  }
  await rm(pages.directory, { recursive: true, force: true })
  deps.copies?.giveBack(pages.directory)
  return whole
}

/**
 * True if the guardian killed the clone because its pages are lost. Synchronous, and reliable as soon as the clone has
 * died: the guardian writes the file before the kill.
 */
export const hasLostPages = ({ pages }: Pick<Clone, 'pages'>): boolean =>
  pages?.servers.some(({ work }) => existsSync(join(work, 'lost'))) === true

async function appsLive({ fs }: DriverDependencies, clone: Clone): Promise<boolean> {
  const live = await Promise.all(clone.containers.map(({ app }) => isSame(fs, app)))
  return live.every(Boolean)
}

/** Kills the trees, which cannot run without their pages. A surviving guardian has already done so. */
async function endClone({ sentinel }: DriverDependencies, { containers }: Clone): Promise<void> {
  for (const { app } of containers) await endTree(sentinel, app)
}

/** Ends the page servers and removes their files. Call it when no process of the clone runs any more. */
export async function dropPages(deps: DriverDependencies, clone: Clone): Promise<void> {
  if (clone.pages === undefined) return
  for (const server of clone.pages.servers) await endPageServer(deps, server)
  await rm(clone.pages.directory, { recursive: true, force: true })
  deps.copies?.giveBack(clone.pages.directory)
}

/**
 * Throws while pages are missing: CRIU would save them as zeros, or refuse.
 *
 * @throws AgentError PagesComing.
 */
export async function assertWhole(
  deps: Pick<DriverDependencies, 'fs' | 'records'>,
  podUid: string,
): Promise<void> {
  const { pages } = (await deps.records.load(podUid)) ?? {}
  for (const server of pages?.servers ?? [])
    if ((await stateOf(deps, server)) !== 'Here')
      throw new AgentError('PagesComing', `container ${server.container}`)
}

const exists = async (path: string): Promise<boolean> => (await unlessGone(stat(path))) !== undefined
