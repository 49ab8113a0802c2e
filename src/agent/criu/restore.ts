// Long because a restore that fails must undo each of its steps.
import { constants } from 'node:fs'
import { copyFile, link, mkdir, mkdtemp, readdir, rm, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { AgentError, isAgentError } from '../../api/agent-errors.ts'
import { holdDirectory } from '../../api/pod-contract.ts'
import { forgetParent, moveAddress, newPidNamespace, rearmTimers } from '../../checkpoint/images/edits.ts'
import { lowerLimits } from '../../checkpoint/images/limits.ts'
import { listeningAddresses } from '../../checkpoint/images/listening.ts'
import { type ContainerImage, slotName } from '../../checkpoint/manifest.ts'
import type { Stored } from '../../checkpoint/store.ts'
import { orderHold } from '../container/hold.ts'
import { assertSame, inBatches, isSame, startTimeOf, treeOf } from '../container/process.ts'
import { assertFits, assertWithinRights, imageFor } from './admission.ts'
import { imagesOf } from './criu.ts'
import type { DriverDependencies } from './dependencies.ts'
import type { KeepListening, Listening } from './keep-listening.ts'
import type { Limits } from './limits.ts'
import type {
  Clone,
  ClonedContainer,
  LocatedAppContainer,
  LocatedPod,
  PageServer,
  RestoreOptions,
} from './memory-driver.ts'
import { assertNoOnlookers } from './onlookers.ts'
import { assertServing, dropPages, endPageServer, lazyBytes, startPageServer } from './pages.ts'
import { type Prepared, restoreAll, workOf } from './restore-tree.ts'
import { isPages } from './room.ts'
import { planSaves } from './saves.ts'
import { endTree, nestedChildren } from './tree.ts'

/** See MemoryDriver.restore. */
export async function restore(
  deps: DriverDependencies,
  pod: LocatedPod,
  from: Stored,
  options: RestoreOptions,
): Promise<Clone> {
  assertFits(deps, pod, from.manifest)
  await Promise.all(pod.containers.map(container => assertHolding(deps, container, options.signal)))
  const listening = await keepListening(deps, pod, from, options)
  try {
    await removeClone(deps, pod)
    return await restoreInto(deps, pod, from, options)
  } finally {
    await listening?.end()
  }
}

/** @param pod has no clone */
async function restoreInto(
  deps: DriverDependencies,
  pod: LocatedPod,
  from: Stored,
  options: RestoreOptions,
): Promise<Clone> {
  const { deadlineMs, signal } = options
  const { manifest, dir } = from
  const pairs = pod.containers.map(container => ({
    container,
    image: imageFor(container, manifest.containers),
  }))
  await mkdir(deps.workDirectory, { recursive: true, mode: 0o700 })
  // A new directory each time: page servers of the previous clone may read from another one until they end.
  const work = await mkdtemp(join(deps.workDirectory, `restore-${pod.pod.uid}-`))
  let serving: Promise<readonly PageServer[]> = Promise.resolve([])
  let kept: readonly PageServer[] = []
  try {
    const limits = await Promise.all(
      pairs.map(({ container }) => assertWithinRights(deps, container, join(dir, imagesOf(container)))),
    )
    deps.copies?.take(
      work,
      pod.pod.namespace,
      await copiedBytes(pairs.map(it => join(dir, imagesOf(it.container)))),
    )
    const address = { from: manifest.source.ip, to: pod.pod.ip }
    const prepareAll = async () => {
      const prepared = await Promise.all(
        pairs.map(({ container, image }, at) => {
          const [from, to] = [join(dir, imagesOf(container)), join(work, container.name)]
          return prepare(container, image, from, to, address, limits[at])
        }),
      )
      const large = prepared.filter(({ image }) => comesLater(deps, image, options))
      serving = startPageServers(deps, large, signal)
      serving.catch(() => undefined)
      return prepared
    }
    // Before CRIU runs: it opens files again by their path, and they must be as they were at the dump.
    const applyAll = async () => {
      for (const save of await planSaves(deps, pod, dir))
        report(deps, pod, await deps.files.apply(save, { deadlineMs, scratch: work, signal }))
    }
    const both = [prepareAll(), applyAll()] as const
    // Cleanup must not start before both have ended.
    await Promise.allSettled(both)
    const [prepared] = await Promise.all(both)
    const { containers, servers } = await restoreSomehow(deps, pod, prepared, serving, options)
    for (const { container, directory } of prepared)
      if (!servers.some(it => it.container === container.name))
        await rm(directory, { recursive: true, force: true })
    const clone: Clone = {
      podUid: pod.pod.uid,
      slot: manifest.slot,
      generation: manifest.generation,
      epoch: manifest.epoch,
      containers,
      stage: 'Frozen',
      ...(servers.length > 0 && { pages: { servers, directory: work } }),
    }
    await deps.records.save(clone)
    kept = servers
    return clone
  } catch (error) {
    await sweep(deps, pod)
    for (const server of await serving.catch(() => [])) await endPageServer(deps, server)
    throw error
  } finally {
    if (kept.length === 0) {
      await rm(work, { recursive: true, force: true })
      deps.copies?.giveBack(work)
    }
  }
}

/** A primary may have died, and its clients may wait for the clone that is replaced. */
async function keepListening(
  deps: DriverDependencies,
  pod: LocatedPod,
  from: Stored,
  { clients, signal }: RestoreOptions,
): Promise<Listening | undefined> {
  if (deps.keepListening === undefined || clients === undefined) return undefined
  const old = await deps.records.load(pod.pod.uid)
  if (old === undefined) return openListening(deps.keepListening, pod, from, signal)
  // A clone of another slot has clients of its own.
  if (slotName(old.slot) !== slotName(from.manifest.slot)) return undefined
  const trees = await Promise.all(
    old.containers.map(async ({ app }) => ((await isSame(deps.fs, app)) ? treeOf(deps.fs, app.pid) : [])),
  )
  const processes = await inBatches(trees.flat(), async pid => {
    const start = await startTimeOf(deps.fs, pid)
    return start === undefined ? [] : [{ pid, start }]
  })
  return deps.keepListening.keep(processes.flat(), clients === 'Recent' ? 'recent' : 'all', signal)
}

/** The primary may be dead: its clients wait for the first clone here, and for every container of it. */
async function openListening(
  keepListening: KeepListening,
  pod: LocatedPod,
  { manifest, dir }: Stored,
  signal: AbortSignal,
): Promise<Listening | undefined> {
  const [first] = pod.containers
  if (first === undefined) return undefined
  const moved = { from: manifest.source.ip, to: pod.pod.ip }
  const found = await Promise.all(
    pod.containers.map(container => listeningAddresses(join(dir, imagesOf(container)), moved)),
  )
  return keepListening.open(first.init, found.flat(), signal)
}

/** Ends everything that an earlier restore left in the pod. */
async function removeClone(deps: DriverDependencies, pod: LocatedPod): Promise<void> {
  await sweep(deps, pod)
  await assertNoOnlookers(deps.fs, pod)
  const before = await deps.records.load(pod.pod.uid)
  if (before !== undefined) await dropPages(deps, before)
  await deps.records.remove(pod.pod.uid)
}

/** Returns how many bytes `prepare` copies from these directories. */
async function copiedBytes(images: readonly string[]): Promise<number> {
  let bytes = 0
  for (const directory of images)
    for (const name of await readdir(directory))
      if (!isPages(name)) bytes += (await stat(join(directory, name))).size
  return bytes
}

/** A container that works without its set-id programs is better than none, but its user may miss them. */
function report({ log }: DriverDependencies, { pod }: LocatedPod, leftOut: readonly string[]): void {
  if (leftOut.length > 0)
    log.warn({ pod: pod.name, namespace: pod.namespace, leftOut }, 'files restored without their privileges')
}

const comesLater = (
  deps: DriverDependencies,
  { memoryBytes }: ContainerImage,
  { lazily }: RestoreOptions,
): boolean =>
  lazily === 'Always' ||
  (lazily === 'Large' && memoryBytes >= lazyBytes && deps.lazily?.isPossible() !== false)

async function startPageServers(
  deps: DriverDependencies,
  large: readonly Prepared[],
  signal: AbortSignal,
): Promise<readonly PageServer[]> {
  const all = await Promise.allSettled(
    large.map(async it => {
      const work = workOf(it, 'lazy')
      await mkdir(work, { recursive: true, mode: 0o700 })
      const { container, image, images } = it
      const { init: hold, name } = container
      return startPageServer(deps, {
        ...{ container: name, hold, images, work, bytes: image.memoryBytes, signal },
      })
    }),
  )
  const failed = all.find(it => it.status === 'rejected')
  const started = all.flatMap(it => (it.status === 'fulfilled' ? [it.value] : []))
  if (failed === undefined) return started
  for (const server of started) await endPageServer(deps, server)
  throw failed.reason
}

interface Restored {
  readonly containers: readonly ClonedContainer[]
  /** Page servers that still deliver pages. */
  readonly servers: readonly PageServer[]
}

/**
 * Restores large containers lazily. If that fails, it restores everything in full, before any restored process has run.
 */
async function restoreSomehow(
  deps: DriverDependencies,
  pod: LocatedPod,
  prepared: readonly Prepared[],
  serving: Promise<readonly PageServer[]>,
  options: RestoreOptions,
): Promise<Restored> {
  try {
    const servers = await serving
    const containers = await restoreAll(deps, prepared, servers, options)
    // A page server that ended before now did not know the app to kill; nothing has run, so no memory is lost.
    for (const server of servers) await assertServing(deps, server)
    return { containers, servers }
  } catch (error) {
    options.signal.throwIfAborted()
    const wasLazy = await serving.then(
      servers => servers.length > 0,
      () => true,
    )
    const isCurable = isAgentError(
      error,
      'PagesFailed',
      'PagesLost',
      'RestoreFailed',
      'RestoreExpired',
      'CloneLost',
    )
    if (!wasLazy || !isCurable || options.lazily === 'Always') throw error
    deps.log.warn({ err: error, pod: pod.pod.name }, 'lazy restore failed; restoring all memory at once')
    await sweep(deps, pod)
    for (const server of await serving.catch(() => [])) await endPageServer(deps, server)
    const containers = await restoreAll(deps, prepared, [], options)
    // Only after a success: if the memory cannot be restored at all, the failure says nothing about lazy restores.
    deps.lazily?.failed(error)
    return { containers, servers: [] }
  }
}

/** Throws unless the first process takes orders and has no app yet. */
async function assertHolding(
  deps: DriverDependencies,
  { init, name }: LocatedAppContainer,
  signal: AbortSignal,
): Promise<void> {
  await assertSame(deps.fs, init)
  const reply = await orderHold(
    { root: `${deps.fs.proc}/${init.pid}/root`, directory: holdDirectory(name), clock: deps.clock, signal },
    { order: 'state' },
  )
  if (reply.word !== 'holding')
    throw new AgentError('HoldRefused', `container ${name}: ${reply.word} ${reply.number}`)
}

/**
 * Makes a directory of the images in which they can be edited. The generation stays as it was verified, and may be
 * removed during the restore. CRIU reads images of other nodes and could be made to change its files, so it gets
 * copies. Only pages are linked, as they are large.
 */
async function prepare(
  container: LocatedAppContainer,
  image: ContainerImage,
  source: string,
  work: string,
  address: { readonly from: string | undefined; readonly to: string },
  /** Absent: the container may have any limits. */
  limits: Limits | undefined,
): Promise<Prepared> {
  const images = join(work, 'images')
  await mkdir(images, { recursive: true, mode: 0o700 })
  for (const name of await readdir(source))
    if (isPages(name)) await link(join(source, name), join(images, name))
    else await copyFile(join(source, name), join(images, name), constants.COPYFILE_EXCL)
  await newPidNamespace(images)
  await rearmTimers(images)
  await forgetParent(images)
  if (limits !== undefined) await lowerLimits(images, limits)
  if (address.from !== undefined) await moveAddress(images, address.from, address.to)
  return { container, image, images, directory: work }
}

/** Kills every restored tree below the first processes, complete or not. Their `hold` must have no app. */
async function sweep(deps: DriverDependencies, pod: LocatedPod): Promise<void> {
  for (const { init } of pod.containers)
    for (const { pid } of await nestedChildren(deps.fs, init)) {
      // The previous tree may be ending already, and may be gone by now.
      const start = await startTimeOf(deps.fs, pid)
      if (start !== undefined) await endTree(deps.sentinel, { pid, start })
    }
}
