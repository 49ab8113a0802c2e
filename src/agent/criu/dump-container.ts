/** One container of a dump. */
import { mkdir, readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { AgentError } from '../../api/agent-errors.ts'
import { CheckpointError } from '../../checkpoint/errors.ts'
import { credentialsOf } from '../../checkpoint/images/credentials.ts'
import { largeImages, mostImageBytes } from '../../checkpoint/images/image-file.ts'
import { reachOf } from '../../checkpoint/images/reach.ts'
import { readStats } from '../../checkpoint/images/stats.ts'
import type { ContainerImage } from '../../checkpoint/manifest.ts'
import type { ProcessRef } from '../container/process.ts'
import { assertSame, statusOf, stdioOf } from '../container/process.ts'
import { watchedPaths } from '../container/watches.ts'
import {
  directoryFiles,
  dumpArguments,
  dumpEnvironment,
  imagesOf,
  type PageRecord,
  recordEnvironment,
  roomEnvironment,
  rootPid,
} from './criu.ts'
import { type CriuGate, createCriuGate } from './criu-gate.ts'
import type { DriverDependencies } from './dependencies.ts'
import { explain } from './explain.ts'
import type { FilesRun } from './files.ts'
import { linkBefore } from './increment.ts'
import type { DumpOptions, LocatedAppContainer } from './memory-driver.ts'
import { immovable } from './reach.ts'
import { cutOff, type Expected } from './room.ts'
import type { TrackedDump } from './tracking.ts'

export interface DumpTarget {
  readonly container: LocatedAppContainer
  readonly app: ProcessRef
  readonly stdio: ContainerImage['stdio']
  readonly gate: CriuGate
  readonly watched: readonly string[]
  readonly images: string
  readonly work: string
  readonly record: PageRecord
}

/** Returns the container's files in the previous dump. */
export function expected({ container, record }: DumpTarget, before: DumpOptions['before']): Expected[] {
  // Nothing tells how much was written since.
  if (record === 'Since') return []
  const directory = `${imagesOf(container)}/`
  return (before?.files ?? []).flatMap(({ path, size }) =>
    path.startsWith(directory) ? [{ name: path.slice(directory.length), size }] : [],
  )
}

export async function target(
  deps: DriverDependencies,
  container: LocatedAppContainer,
  directory: string,
  work: string,
  tracked: TrackedDump | undefined,
): Promise<DumpTarget> {
  const { app } = container
  if (app === undefined) throw new AgentError('NotRunning', `container ${container.name}`)
  await assertSame(deps.fs, app)
  const made = {
    images: join(directory, imagesOf(container)),
    work: join(work, container.name),
  }
  for (const path of Object.values(made)) await mkdir(path, { recursive: true, mode: 0o700 })
  const isSince =
    tracked?.since !== undefined && (await linkBefore(join(tracked.since, imagesOf(container)), made.work))
  return {
    record: tracked === undefined ? 'None' : isSince ? 'Since' : 'Begin',
    container,
    app,
    stdio: { '0': '', '1': '', '2': '', ...(await stdioOf(deps.fs, app.pid)) },
    gate: await createCriuGate(made.work),
    watched: await watchedPaths(deps.fs, app.pid),
    ...made,
  }
}

export async function dumpContainer(
  deps: DriverDependencies,
  { app, images, work, container, watched, record }: DumpTarget,
  during: string,
  { deadlineMs, roomBytes, signal }: FilesRun,
): Promise<void> {
  const end = await deps.sentinel.spawn(
    {
      target: app,
      during,
      namespaces: 'keep',
      rights: 'Dump',
      cgroup: 'stay',
      deadlineMs,
      log: join(work, 'output'),
      files: directoryFiles({ programs: deps.programs, images, work }),
      environment: [...dumpEnvironment, ...roomEnvironment(roomBytes), ...recordEnvironment(record)],
      arguments: dumpArguments(watched, record),
    },
    signal,
  )
  if (end.expired) throw new AgentError('DumpExpired', `container ${container.name}, ${deadlineMs} ms`)
  if (end.code === 0) return
  const why = `container ${container.name}: ${await explain(work, 'dump.log', end)}`
  if (end.code === ownFailure && why.includes(notAllStopped)) throw new AgentError('StopFailed', why)
  throw roomBytes !== undefined && why.includes('File too large')
    ? new CheckpointError('StoreFull', `${why}: only ${roomBytes} bytes are free`)
    : new AgentError('DumpFailed', why)
}

/** Exit code and message of the CRIU shim: see native/criu-shim/gate.c. */
const ownFailure = 125
const notAllStopped = 'gate: not all processes stopped'

/** This image exists only if CRIU made files in the layer. */
export const lateFiles = 'remap-fpath.img'

export async function leavesFiles(images: string): Promise<boolean> {
  return (await readdir(images)).includes(lateFiles)
}

const SIGTERM = 15

/** A pod that received SIGTERM during the stop is ending: its memory must not be restored later. */
export async function assertNotEnding(
  deps: DriverDependencies,
  { app, container }: DumpTarget,
): Promise<void> {
  for (const { pid } of [app, container.init]) {
    const status = await statusOf(deps.fs, pid)
    if (status === undefined) throw new AgentError('ProcessGone', `container ${container.name}`)
    if ((status.pending & (1n << BigInt(SIGTERM - 1))) !== 0n)
      throw new AgentError('DumpVoid', `container ${container.name}`)
  }
}

function describeLarge(names: readonly string[]): string {
  const most = `more than ${mostImageBytes / 2 ** 20} MiB`
  return names.includes('sk-queues.img')
    ? `${most} of unreceived data in unix sockets`
    : `${most} of images that describe its processes (${names.slice(0, 3).join(', ')})`
}

export async function imageOf({ container, stdio, images, work }: DumpTarget): Promise<ContainerImage> {
  const large = await largeImages(images)
  if (large.length > 0)
    throw new AgentError('Unsupported', `container ${container.name}: ${describeLarge(large)}`)
  const inTheWay = immovable(await reachOf(images))
  if (inTheWay.length > 0)
    throw new AgentError('Unsupported', `container ${container.name}: ${inTheWay.join('; ')}`)
  const [stats, credentials, memoryBytes] = await Promise.all([
    readStats(work, 'dump'),
    credentialsOf(images),
    cutOff(images),
  ])
  return {
    name: container.name,
    imageId: container.imageId,
    rootPid,
    stdio,
    credentials,
    memoryBytes,
    frozenMicroseconds: stats.frozen,
  }
}
