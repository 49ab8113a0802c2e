/** Memory that is still on its way into restored processes: who brings it, and what becomes of it. */
import { existsSync } from 'node:fs'
import { rm, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { isSame, type ProcFs, statusOf, unlessGone } from '../discover/process.ts'
import { AgentError, isAgentError } from '../errors.ts'
import type { ProcessRef } from '../sentinel.ts'
import { directoryFiles, lazyPagesArguments, lazyPagesEnvironment, lazyPagesSocket } from './criu.ts'
import type { DriverDependencies } from './dependencies.ts'
import { complaintsOf } from './explain.ts'
import type { Clone, PageServer } from './memory-driver.ts'
import { endTree } from './tree.ts'

/**
 * Bytes of a container's pages from which on they come later. To start who brings them takes 35-60 ms; below this a copy
 * of everything takes about as long, and is over then.
 */
export const lazyBytes = 64 * 1024 * 1024

const bytesPerMs = 10_000
/** Below the age at which a work directory counts as left behind. */
const longestMs = 3_000_000

/** Milliseconds until an application whose pages are not all there is given up. */
export const pagesDeadlineMs = (bytes: number): number =>
  Math.min(30_000 + Math.ceil(bytes / bytesPerMs), longestMs)

/** Its guardian gives up the application first: to end both at once would let the application go on without them. */
const afterGuardianMs = 120_000
const startMs = 10_000
const lookMs = 50

export interface StartOptions {
  readonly container: string
  readonly hold: ProcessRef
  readonly images: string
  /** Where CRIU meets the restore: it runs with the same. */
  readonly work: string
  readonly bytes: number
  readonly signal: AbortSignal
}

/**
 * Starts who brings the pages of a container, before the restore that asks for them. It outlives this process.
 *
 * @throws AgentError PagesFailed; nothing of it is left then.
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
      // With directories that lead nowhere: it reads images that are another node's. And with no number in the container:
      // a file of /proc that its processes had open would be of whoever has that number where they come back.
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
    // It has too many already, or memory is short.
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
  (await complaintsOf(work, ['pages.log', 'pages-output'])) || 'it said nothing'

/** Only when nobody runs, or will run, with the memory: what is missing of it would be taken to be zero. */
export const endPageServer = (
  { sentinel }: Pick<DriverDependencies, 'sentinel'>,
  { server }: PageServer,
): Promise<void> => endTree(sentinel, server)

/** One whose sentinel was killed may wait for ever to be reaped. */
async function runs(fs: ProcFs, process: ProcessRef): Promise<boolean> {
  return (await isSame(fs, process)) && (await statusOf(fs, process.pid))?.state !== 'Z'
}

type State = 'Coming' | 'Here' | 'Lost'

/** What native/preload/pages.c says, also to an agent that has not started it. */
async function stateOf({ fs }: Pick<DriverDependencies, 'fs'>, { server, work }: PageServer): Promise<State> {
  const isAlive = await runs(fs, server)
  if (await exists(join(work, 'arrived'))) return 'Here'
  // Who was killed with its guardian has said nothing.
  return !isAlive || (await exists(join(work, 'lost'))) ? 'Lost' : 'Coming'
}

/**
 * To be asked once the restore is over and before anything of it runs: from then on the guardian knows whom to end.
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
  // It has arrived before, and what told of it is removed: that must not be taken for lost.
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
  // Who brings pages ends well, too, when nobody is left who wants them.
  if (!(await appsLive(deps, clone))) {
    await dropPages(deps, clone)
    throw new AgentError('CloneLost')
  }
  // The record first: a directory that is gone would count as lost.
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
 * Whether a clone was ended because its pages do not come. At once, for whoever has to say why it has ended: the word is
 * written before the kill.
 */
export const hasLostPages = ({ pages }: Pick<Clone, 'pages'>): boolean =>
  pages?.servers.some(({ work }) => existsSync(join(work, 'lost'))) === true

async function appsLive({ fs }: DriverDependencies, clone: Clone): Promise<boolean> {
  const live = await Promise.all(clone.containers.map(({ app }) => isSame(fs, app)))
  return live.every(Boolean)
}

/** Kills what cannot go on; its guardian has done it already, if there was one left. */
async function endClone({ sentinel }: DriverDependencies, { containers }: Clone): Promise<void> {
  for (const { app } of containers) await endTree(sentinel, app)
}

/** To be called when nothing of the clone runs any more. */
export async function dropPages(deps: DriverDependencies, clone: Clone): Promise<void> {
  if (clone.pages === undefined) return
  for (const server of clone.pages.servers) await endPageServer(deps, server)
  await rm(clone.pages.directory, { recursive: true, force: true })
  deps.copies?.giveBack(clone.pages.directory)
}

/**
 * CRIU would save what is not there yet as zeros, or refuse.
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
