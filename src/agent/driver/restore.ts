import { link, mkdir, readdir, readFile, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { holdDirectory } from '../../api/stage.ts'
import { credentialsOf } from '../../checkpoint/images/credentials.ts'
import { forgetParent, moveAddress, newPidNamespace, rearmTimers } from '../../checkpoint/images/edits.ts'
import { reachOf } from '../../checkpoint/images/reach.ts'
import type { ContainerImage } from '../../checkpoint/manifest.ts'
import type { Stored } from '../../checkpoint/store.ts'
import { misfit } from '../../succession/placement.ts'
import { assertSame, refOf, statusOf } from '../discover/process.ts'
import { AgentError } from '../errors.ts'
import { orderHold } from '../hold.ts'
import { directoryFiles, inheritPipes, restoreArguments } from './criu.ts'
import type { DriverDependencies } from './dependencies.ts'
import { explain } from './dump.ts'
import { escapes } from './escape.ts'
import type {
  Clone,
  ClonedContainer,
  LocatedAppContainer,
  LocatedPod,
  RestoreOptions,
} from './memory-driver.ts'
import { beyondReach } from './reach.ts'
import { excess, type Rights, rightsOf } from './rights.ts'
import { planSaves } from './saves.ts'
import { childBelowHold, nestedChildren, runningOf, threadsOf } from './tree.ts'

/** See MemoryDriver.restore. */
export async function restore(
  deps: DriverDependencies,
  pod: LocatedPod,
  from: Stored,
  { deadlineMs, signal }: RestoreOptions,
): Promise<Clone> {
  const { manifest, dir } = from
  if (manifest.slot.namespace !== pod.pod.namespace)
    throw new AgentError('PodForeign', `of ${manifest.slot.namespace}, in ${pod.pod.namespace}`)
  const unfit = deps.machine && misfit(manifest, deps.machine)
  if (unfit !== undefined) throw new AgentError('MachineDiffers', unfit.message)
  const work = join(deps.workDirectory, `restore-${pod.pod.uid}`)
  const pairs = pod.containers.map(container => ({
    container,
    image: imageFor(container, manifest.containers),
  }))
  await Promise.all(pairs.map(({ container }) => assertHolding(deps, container, signal)))
  await sweep(deps, pod)
  await deps.records.remove(pod.pod.uid)
  try {
    await rm(work, { recursive: true, force: true })
    const prepared = await Promise.all(
      pairs.map(pair =>
        prepare(deps, pair.container, pair.image, dir, join(work, pair.container.name), {
          from: manifest.source.ip,
          to: pod.pod.ip,
        }),
      ),
    )
    // The files first: what is open is opened again by its path, and has to be as it was.
    for (const save of await planSaves(deps, pod, dir))
      await deps.files.apply(save, { deadlineMs, scratch: work, signal })
    const containers = await restoreAll(deps, prepared, { deadlineMs, signal })
    const clone: Clone = {
      podUid: pod.pod.uid,
      slot: manifest.slot,
      generation: manifest.generation,
      epoch: manifest.epoch,
      containers,
      stage: 'Frozen',
    }
    await deps.records.save(clone)
    return clone
  } catch (error) {
    await sweep(deps, pod)
    throw error
  } finally {
    await rm(work, { recursive: true, force: true })
  }
}

interface Prepared {
  readonly container: LocatedAppContainer
  readonly image: ContainerImage
  readonly images: string
  readonly work: string
}

function imageFor(container: LocatedAppContainer, images: readonly ContainerImage[]): ContainerImage {
  const image = images.find(it => it.name === container.name)
  if (image === undefined) throw new AgentError('RestoreFailed', `no memory of container ${container.name}`)
  if (image.imageId !== container.imageId)
    throw new AgentError(
      'ImageDiffers',
      `container ${container.name}: ${container.imageId}, not ${image.imageId}`,
    )
  return image
}

/** Only below a first process that takes orders and has no app yet. */
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
 * Checks rights, and makes a directory of links to the images, in which they can be edited: an edit replaces a file by a
 * rename. The generation stays as it was verified, and may be removed while it is read here.
 */
async function prepare(
  deps: DriverDependencies,
  container: LocatedAppContainer,
  image: ContainerImage,
  directory: string,
  work: string,
  address: { readonly from: string | undefined; readonly to: string },
): Promise<Prepared> {
  const source = join(directory, 'containers', container.name, 'criu')
  await assertWithinRights(deps, container, source)
  const images = join(work, 'images')
  await mkdir(images, { recursive: true, mode: 0o700 })
  for (const name of await readdir(source)) await link(join(source, name), join(images, name))
  await newPidNamespace(images)
  await rearmTimers(images)
  await forgetParent(images)
  if (address.from !== undefined) await moveAddress(images, address.from, address.to)
  return { container, image, images, work }
}

async function assertWithinRights(
  deps: DriverDependencies,
  { init, name }: LocatedAppContainer,
  images: string,
): Promise<void> {
  const holder = await livingRights(deps, init.pid)
  if (holder === undefined) throw new AgentError('ProcessGone', `container ${name}`)
  // Of the images and not of the manifest: the manifest is what the other node says of them.
  const more = [
    ...(await credentialsOf(images)).flatMap(held => excess(held, holder)),
    ...beyondReach(await reachOf(images), holder),
  ]
  if (more.length > 0)
    throw new AgentError('CredentialsExceed', `container ${name}: ${[...new Set(more)].join('; ')}`)
}

async function restoreAll(
  deps: DriverDependencies,
  prepared: readonly Prepared[],
  { deadlineMs, signal }: RestoreOptions,
): Promise<ClonedContainer[]> {
  const failed = new AbortController()
  const stop = AbortSignal.any([signal, failed.signal])
  const all = prepared.map(it =>
    restoreContainer(deps, it, deadlineMs, stop).catch((error: unknown) => {
      failed.abort(error)
      throw error
    }),
  )
  // All have ended before what is left of them is swept away.
  await Promise.allSettled(all)
  signal.throwIfAborted()
  if (failed.signal.aborted) throw failed.signal.reason
  return Promise.all(all)
}

async function restoreContainer(
  deps: DriverDependencies,
  { container, image, images, work }: Prepared,
  deadlineMs: number,
  signal: AbortSignal,
): Promise<ClonedContainer> {
  const { init: hold, name } = container
  const { pipes, files } = inheritPipes(image.stdio, hold.pid)
  const end = await deps.sentinel.spawn(
    {
      target: hold,
      namespaces: 'clone',
      cgroup: 'join',
      deadlineMs,
      log: join(work, 'output'),
      files: [...directoryFiles({ programs: deps.programs, images, work }), ...files],
      arguments: restoreArguments(pipes),
    },
    signal,
  )
  if (end.expired) throw new AgentError('RestoreExpired', `container ${name}, ${deadlineMs} ms`)
  if (end.code !== 0)
    throw new AgentError('RestoreFailed', `container ${name}: ${await explain(work, 'restore.log', end)}`)
  const pidBelowHold = Number((await readFile(join(work, 'pid'), 'utf8')).trim())
  const pid = await childBelowHold(deps.fs, hold, pidBelowHold)
  if (pid === undefined) throw new AgentError('CloneLost', `container ${name}`)
  const cloned = { name, hold, app: await refOf(deps.fs, pid), pidBelowHold }
  await assertFrozenWithinRights(deps, cloned)
  return cloned
}

/** Of a process or a thread; undefined: it is gone. */
async function livingRights({ fs }: DriverDependencies, task: number): Promise<Rights | undefined> {
  const status = await statusOf(fs, task)
  // Without a security module there is nothing to be read.
  const lsm = await readFile(`${fs.proc}/${task}/attr/current`, 'utf8').catch(() => '')
  return status === undefined ? undefined : rightsOf(status, lsm)
}

/** Once more on what came out: the images were read by two programs, and only one of them is ours. */
async function assertFrozenWithinRights(deps: DriverDependencies, { app, hold, name }: ClonedContainer) {
  const holder = await livingRights(deps, hold.pid)
  if (holder === undefined) throw new AgentError('ProcessGone', `container ${name}`)
  const held = await Promise.all((await threadsOf(deps.fs, app.pid)).map(each => livingRights(deps, each)))
  const more = [
    ...held.flatMap(rights => (rights === undefined ? [] : excess(rights, holder))),
    ...(await escapes(deps.fs, app.pid, hold.pid)),
  ]
  if (more.length > 0)
    throw new AgentError('CredentialsExceed', `container ${name}: ${[...new Set(more)].join('; ')}`)
  // CRIU lets go of what it has told to stop: on a busy machine each task stops only when it gets its turn.
  for (const end = deps.clock.monotonic() + stoppingMs; ; await deps.clock.sleep(1)) {
    const running = await runningOf(deps.fs, app.pid)
    if (running.length === 0) return
    if (deps.clock.monotonic() > end)
      throw new AgentError('RestoreFailed', `container ${name}: ${running.length} processes run already`)
  }
}

const stoppingMs = 500

/** Ends whatever a restore has left below the first processes, complete or not. Their `hold` must have no app. */
async function sweep(deps: DriverDependencies, pod: LocatedPod): Promise<void> {
  for (const { init } of pod.containers)
    for (const { pid } of await nestedChildren(deps.fs, init))
      await deps.sentinel.treeKill(await refOf(deps.fs, pid)).catch((error: unknown) => {
        // Gone by itself in the meantime is what was wanted.
        if (!(error instanceof AgentError && error.code === 'ProcessGone')) throw error
      })
}
