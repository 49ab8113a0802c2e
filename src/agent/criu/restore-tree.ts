/** Runs CRIU's restores, one per container, and checks the restored processes. */
import { mkdir, readFile, rename, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { AgentError } from '../../api/agent-errors.ts'
import type { ContainerImage } from '../../checkpoint/manifest.ts'
import { inBatches, refOf } from '../container/process.ts'
import { criuEnvironment, directoryFiles, inheritPipes, lazyPagesApp, restoreArguments } from './criu.ts'
import type { DriverDependencies } from './dependencies.ts'
import { escapes } from './escape.ts'
import { explain } from './explain.ts'
import { beyondLimits, livingLimits } from './limits.ts'
import type { ClonedContainer, LocatedAppContainer, PageServer, RestoreOptions } from './memory-driver.ts'
import { excess, livingRights } from './rights.ts'
import { childBelowHold, runningOf, threadsOf } from './tree.ts'

export interface Prepared {
  readonly container: LocatedAppContainer
  readonly image: ContainerImage
  readonly images: string
  /** Directory of the images and of the logs of the restore. */
  readonly directory: string
}

/** Returns the work directory of one restore attempt: a second attempt must not find files of the first. */
export const workOf = ({ directory }: Prepared, way: 'lazy' | 'full'): string => join(directory, way)

/**
 * Restores all containers, stopped. Containers that have a page server start without their pages.
 *
 * @throws AgentError RestoreFailed, RestoreExpired, CloneLost, CredentialsExceed; nothing runs then, but process trees
 *   may be left.
 */
export async function restoreAll(
  deps: DriverDependencies,
  prepared: readonly Prepared[],
  servers: readonly PageServer[],
  { deadlineMs, signal }: RestoreOptions,
): Promise<ClonedContainer[]> {
  const failed = new AbortController()
  const stop = AbortSignal.any([signal, failed.signal])
  const all = prepared.map(it =>
    restoreContainer(
      deps,
      it,
      servers.some(({ container }) => container === it.container.name) ? 'lazy' : 'full',
      deadlineMs,
      stop,
    ).catch((error: unknown) => {
      failed.abort(error)
      throw error
    }),
  )
  // The caller removes the leftovers, so every restore must have ended before.
  await Promise.allSettled(all)
  signal.throwIfAborted()
  if (failed.signal.aborted) throw failed.signal.reason
  return Promise.all(all)
}

async function restoreContainer(
  deps: DriverDependencies,
  one: Prepared,
  way: 'lazy' | 'full',
  deadlineMs: number,
  signal: AbortSignal,
): Promise<ClonedContainer> {
  const { container, image, images } = one
  const { init: hold, name } = container
  const work = workOf(one, way)
  await mkdir(work, { recursive: true, mode: 0o700 })
  const { pipes, files } = inheritPipes(image.stdio, hold.pid)
  const end = await deps.sentinel.spawn(
    {
      target: hold,
      namespaces: 'clone',
      rights: 'Restore',
      cgroup: 'join',
      deadlineMs,
      log: join(work, 'output'),
      files: [...directoryFiles({ programs: deps.programs, images, work }), ...files],
      environment: criuEnvironment,
      arguments: restoreArguments(pipes, way === 'lazy'),
    },
    signal,
  )
  if (end.expired) throw new AgentError('RestoreExpired', `container ${name}, ${deadlineMs} ms`)
  if (end.code !== 0)
    throw new AgentError('RestoreFailed', `container ${name}: ${await explain(work, 'restore.log', end)}`)
  const pidBelowHold = Number((await readFile(join(work, 'pid'), 'utf8')).trim())
  const pid = await childBelowHold(deps.fs, hold, pidBelowHold)
  if (pid === undefined) throw new AgentError('CloneLost', `container ${name}`)
  if (way === 'lazy') {
    await writeFile(join(work, `${lazyPagesApp}.new`), String(pid), { mode: 0o600 })
    await rename(join(work, `${lazyPagesApp}.new`), join(work, lazyPagesApp))
  }
  const cloned = { name, hold, app: await refOf(deps.fs, pid), pidBelowHold }
  await assertFrozenWithinRights(deps, cloned)
  return cloned
}

/** Checks the restored processes too: both CRIU and the agent parsed the images, and they may disagree. */
async function assertFrozenWithinRights(deps: DriverDependencies, { app, hold, name }: ClonedContainer) {
  const holder = await livingRights(deps.fs, hold.pid)
  const own = await livingLimits(deps.fs, hold.pid)
  if (holder === undefined || own === undefined) throw new AgentError('ProcessGone', `container ${name}`)
  const held = await inBatches(await threadsOf(deps.fs, app.pid), async each => {
    const [rights, limits] = [await livingRights(deps.fs, each), await livingLimits(deps.fs, each)]
    return [
      ...(rights === undefined ? [] : excess(rights, holder)),
      ...(limits === undefined ? [] : beyondLimits(limits, own, holder)),
    ]
  })
  const more = [...held.flat(), ...(await escapes(deps.fs, app.pid, hold.pid))]
  if (more.length > 0)
    throw new AgentError('CredentialsExceed', `container ${name}: ${[...new Set(more)].join('; ')}`)
  // CRIU detaches before the tasks have stopped: on a busy machine, each stops only when it is scheduled.
  for (const end = deps.clock.monotonic() + stoppingMs; ; await deps.clock.sleep(1)) {
    const running = await runningOf(deps.fs, app.pid)
    if (running.length === 0) return
    if (deps.clock.monotonic() > end)
      throw new AgentError('RestoreFailed', `container ${name}: ${running.length} processes already run`)
  }
}

const stoppingMs = 500
