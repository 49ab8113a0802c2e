/** Processes and watches of a pod on this node, for tasks that end a pod or redirect its connections. */

import { isAgentError } from '../../api/agent-errors.ts'
import type { ProcessRef } from '../container/process.ts'
import { endTree } from '../criu/tree.ts'
import type { PodView } from '../observe/snapshot.ts'
import type { SentinelClient, Watched } from '../sentinel/client.ts'
import { targetOf } from '../state/understudies.ts'
import { parseWatchName, watchName } from '../state/watch-name.ts'
import type { TaskContext } from './task-context.ts'

/**
 * How long a dead pod's redirect lasts without renewal, ms. An agent that restarts is back within this time. After it,
 * an empty app that the kubelet has started there is better than no answer.
 */
export const redirectLastsMs = 60_000

/** The sentinel's watches of this pod, no matter which agent asked for them. */
export const watchesOf = async (
  sentinel: Pick<SentinelClient, 'watches'>,
  uid: string,
  signal?: AbortSignal,
): Promise<Watched[]> =>
  (await sentinel.watches(signal)).filter(({ name }) => parseWatchName(name)?.uid === uid)

/**
 * Closes every redirect of these watches, or keeps it closed.
 * @returns true if each of them has one, and connections go where it leads.
 */
export async function close(
  sentinel: Pick<SentinelClient, 'redirect'>,
  watches: readonly Watched[],
  signal?: AbortSignal,
): Promise<boolean> {
  let closed = 0
  for (const { name, grave } of watches)
    if (grave !== 'none')
      await unlessRefused(
        sentinel.redirect(name, signal).then(() => {
          closed += 1
        }),
      )
  return closed > 0 && closed === watches.length
}

/** Has the redirects of these watches lead there from the end of their processes on. */
export async function leadTo(
  sentinel: Pick<SentinelClient, 'prepareRedirect'>,
  watches: readonly Watched[],
  to: { readonly heir: string; readonly lastsMs?: number },
  signal?: AbortSignal,
): Promise<void> {
  for (const { name, grave } of watches)
    if (grave !== 'none') await unlessRefused(sentinel.prepareRedirect({ name, ...to }, signal))
}

/** Removes all watches of a pod. */
export async function release(
  sentinel: Pick<SentinelClient, 'watches' | 'undoRedirect' | 'unwatch'>,
  uid: string,
  signal?: AbortSignal,
): Promise<void> {
  for (const { name } of await watchesOf(sentinel, uid, signal)) await dropWatch(sentinel, name, signal)
}

/** Opens the pod to connections again, if it was closed, and removes the watch. */
export async function dropWatch(
  sentinel: Pick<SentinelClient, 'unwatch' | 'undoRedirect'>,
  name: string,
  signal?: AbortSignal,
): Promise<void> {
  // There may be nothing to open, or the pod is gone.
  await unlessRefused(sentinel.undoRedirect(name, signal))
  await unwatch(sentinel, name, signal)
}

/** Removes a watch with its redirect. A missing watch is no error. */
export const unwatch = (
  sentinel: Pick<SentinelClient, 'unwatch'>,
  name: string,
  signal?: AbortSignal,
): Promise<void> => unlessRefused(sentinel.unwatch(name, signal))

/**
 * First processes of the pod's running containers, and their cgroups. A container that is down does not hide the others.
 */
export async function runningOf(
  { driver }: Pick<TaskContext, 'driver'>,
  pod: PodView,
  signal: AbortSignal,
): Promise<{ readonly watch: string; readonly init: ProcessRef; readonly cgroups: readonly string[] }[]> {
  const found = await Promise.all(
    pod.containers
      .filter(({ containerId }) => containerId !== undefined)
      .map(async container => {
        try {
          // In a fenced pod, the first process of an understudy is stopped, too, and cannot say where its app is.
          const target = { ...targetOf({ ...pod, containers: [container] }), promoted: false }
          return (await driver.locate(target, signal)).containers
        } catch (error) {
          if (isAgentError(error, 'NotRunning', 'ProcessGone')) return []
          throw error
        }
      }),
  )
  return found.flat().map(({ name, containerId, init, cgroups }) => ({
    watch: watchName({ uid: pod.uid, container: name, containerId }),
    init,
    cgroups,
  }))
}

/** Kills the watched processes that still live. */
export const endWatched = (
  sentinel: Pick<SentinelClient, 'treeKill'>,
  watches: readonly Watched[],
): Promise<unknown> =>
  Promise.all(
    watches.flatMap(({ pid, start, diedUnixNs }) =>
      diedUnixNs === undefined ? [endTree(sentinel, { pid, start })] : [],
    ),
  )

/** Ignores errors that mean that the sentinel does not know the watch, or that the process is gone. */
export async function unlessRefused(asked: Promise<unknown>): Promise<void> {
  try {
    await asked
  } catch (error) {
    if (!isAgentError(error, 'SentinelRefused', 'ProcessGone')) throw error
  }
}
