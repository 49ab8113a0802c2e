import type { SlotLease } from '../../api/slot-lease.ts'
import { slotName } from '../../checkpoint/manifest.ts'
import { isKubeError } from '../../kube/errors.ts'
import { endTree } from '../driver/tree.ts'
import { AgentError } from '../errors.ts'
import { nowhere } from './duties-of.ts'
import type { DutyOf } from './duty.ts'
import { close, dropWatch, endWatched, runningOf, unlessRefused, unwatch, watchesOf } from './remains.ts'
import type { PodView } from './snapshot.ts'
import type { Work } from './work.ts'

/**
 * Ends a primary that is being deleted or has been replaced, so that it does not run on beside its successor.
 *
 * @throws AgentError StillCalled where the API server says that it is not to be ended any more: it answers again, and our
 * cache is behind.
 */
export async function bury(work: Work, { pod, lease }: DutyOf<'bury'>, signal: AbortSignal): Promise<void> {
  if (!pod.terminating && lease.ending === pod.uid && (await isSpared(work, pod, lease, signal)))
    throw new AgentError('StillCalled', slotName(lease))
  const first = pod.containers[0]?.name ?? ''
  const why = pod.terminating ? 'its pod is being deleted' : 'another pod is called to its slot'
  await endPod(work, pod, first, `was stopped: ${why}`, signal)
  work.log.info({ pod: pod.name, slot: slotName(lease), why }, 'a primary was stopped')
}

/** Where the API server does not answer it is ended: somebody else may be called any moment. */
async function isSpared(
  { inquiry }: Work,
  { uid }: PodView,
  lease: SlotLease,
  signal: AbortSignal,
): Promise<boolean> {
  try {
    const now = await inquiry.lease(lease, signal)
    return now?.holder.uid === uid && now.life === lease.life && now.ending !== uid
  } catch (error) {
    signal.throwIfAborted()
    if (!isKubeError(error)) throw error
    return false
  }
}

/** A kill that takes longer meets something that the kernel does not let go; nobody can reach it any more anyway. */
const killPatienceMs = 1_000

/**
 * Shuts a primary off, ends it and says so, in this order: the way to the heir opens first, or a client would find nobody;
 * and it is told when nothing of it runs that could still change what others see. What cannot be found does not run.
 */
export async function endPod(
  work: Work,
  pod: PodView,
  container: string,
  what: string,
  signal: AbortSignal,
): Promise<void> {
  const { sentinel, deaths, clock } = work
  const watches = await watchesOf(sentinel, pod.uid, signal)
  await close(sentinel, watches, signal)
  const running = await runningOf(work, pod, signal)
  const killed = Promise.all([
    endWatched(sentinel, watches),
    ...running.map(({ init }) => endTree(sentinel, init)),
  ])
  const over = new AbortController()
  await Promise.race([killed, clock.sleep(killPatienceMs, over.signal).catch(() => undefined)])
  over.abort()
  await deaths.declare(pod, container, what)
  await killed
}

/**
 * A pod that is not there any more although it was watched a moment ago: it was deleted without its grace, and somebody
 * else is called to its slot at once. The kubelet would let it run on for that grace. Its watches go.
 */
export async function endGone(
  { sentinel, inquiry, log }: Pick<Work, 'sentinel' | 'inquiry' | 'log'>,
  uid: string,
  signal: AbortSignal,
): Promise<void> {
  const watches = await watchesOf(sentinel, uid, signal)
  if (watches.length === 0) return
  // A pod that has lost its labels only is not ours any more, and runs on.
  if (!(await inquiry.isHere(uid, signal))) {
    // Its heir may have been given another slot since, and nobody can lead the way elsewhere once the watches are gone.
    for (const { name, grave } of watches)
      if (grave !== 'none') await unlessRefused(sentinel.grave({ name, heir: nowhere }, signal))
    await close(sentinel, watches, signal)
    await endWatched(sentinel, watches)
    log.info({ uid, watches: watches.map(({ name }) => name) }, 'what a pod that is gone has left was ended')
    for (const { name } of watches) await unwatch(sentinel, name, signal)
    return
  }
  for (const { name } of watches) await dropWatch(sentinel, name, signal)
}
