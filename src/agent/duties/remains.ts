/** What is left of a pod in this node's processes, and the way to it: for whoever ends a pod, or leads others past it. */
import { endTree } from '../driver/tree.ts'
import { isAgentError } from '../errors.ts'
import type { ProcessRef, SentinelClient, Watched } from '../sentinel.ts'
import { parseWatchName, watchName } from './deaths.ts'
import type { PodView } from './snapshot.ts'
import { targetOf } from './understudies.ts'
import type { Work } from './work.ts'

/**
 * How long a dead pod stays shut off on nobody's word, ms. Within it an agent that was away comes back; beyond it what the
 * kubelet has started there, empty, is better than nothing.
 */
export const graveLastsMs = 60_000

/** What the sentinel watches of this pod, whichever agent asked for it. */
export const watchesOf = async (
  sentinel: Pick<SentinelClient, 'watches'>,
  uid: string,
  signal?: AbortSignal,
): Promise<Watched[]> =>
  (await sentinel.watches(signal)).filter(({ name }) => parseWatchName(name)?.uid === uid)

/** Closes every grave of these, or keeps it closed. */
export async function close(
  sentinel: Pick<SentinelClient, 'bury'>,
  watches: readonly Watched[],
  signal?: AbortSignal,
): Promise<void> {
  for (const { name, grave } of watches)
    if (grave !== 'none') await unlessRefused(sentinel.bury(name, signal))
}

/** Takes all watches of a pod away. */
export async function release(
  sentinel: Pick<SentinelClient, 'watches' | 'exhume' | 'unwatch'>,
  uid: string,
  signal?: AbortSignal,
): Promise<void> {
  for (const { name } of await watchesOf(sentinel, uid, signal)) await dropWatch(sentinel, name, signal)
}

/** Opens the pod again, if it was closed, and takes the watch away. */
export async function dropWatch(
  sentinel: Pick<SentinelClient, 'unwatch' | 'exhume'>,
  name: string,
  signal?: AbortSignal,
): Promise<void> {
  // There may be nothing to open, or the pod is gone.
  await unlessRefused(sentinel.exhume(name, signal))
  await unwatch(sentinel, name, signal)
}

/** Takes a watch away, with its grave. One that is not there is fine. */
export const unwatch = (
  sentinel: Pick<SentinelClient, 'unwatch'>,
  name: string,
  signal?: AbortSignal,
): Promise<void> => unlessRefused(sentinel.unwatch(name, signal))

/** First processes of those of its containers that have one: where one is down the others are found all the same. */
export async function runningOf(
  { driver }: Pick<Work, 'driver'>,
  pod: PodView,
  signal: AbortSignal,
): Promise<{ readonly watch: string; readonly init: ProcessRef }[]> {
  const found = await Promise.all(
    pod.containers
      .filter(({ containerId }) => containerId !== undefined)
      .map(async container => {
        try {
          return (await driver.locate(targetOf({ ...pod, containers: [container] }), signal)).containers
        } catch (error) {
          if (isAgentError(error, 'NotRunning', 'ProcessGone')) return []
          throw error
        }
      }),
  )
  return found.flat().map(({ name, containerId, init }) => ({
    watch: watchName({ uid: pod.uid, container: name, containerId }),
    init,
  }))
}

/** Ends what lives of these. */
export const endWatched = (
  sentinel: Pick<SentinelClient, 'treeKill'>,
  watches: readonly Watched[],
): Promise<unknown> =>
  Promise.all(
    watches.flatMap(({ pid, start, diedUnixNs }) =>
      diedUnixNs === undefined ? [endTree(sentinel, { pid, start })] : [],
    ),
  )

/** The sentinel does not know of it, or nothing of it is left. */
export async function unlessRefused(asked: Promise<unknown>): Promise<void> {
  try {
    await asked
  } catch (error) {
    if (!isAgentError(error, 'SentinelRefused', 'ProcessGone')) throw error
  }
}
