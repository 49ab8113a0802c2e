import { AgentError } from '../../api/agent-errors.ts'
import type { SlotLease } from '../../api/slot-lease.ts'
import { slotName } from '../../checkpoint/manifest.ts'
import { isKubeError } from '../../kube/errors.ts'
import { endTree } from '../criu/tree.ts'
import { isStillCalled, nowhere } from '../decide/slot-facts.ts'
import type { TaskOf } from '../decide/task.ts'
import type { PodView } from '../observe/snapshot.ts'
import type { Watched } from '../sentinel/client.ts'
import { handoverStop } from './hand-over.ts'
import {
  close,
  dropWatch,
  endWatched,
  leadTo,
  redirectLastsMs,
  runningOf,
  unwatch,
  watchesOf,
} from './remains.ts'
import { type SaveLastContext, saveLast } from './save-last.ts'
import type { TaskContext } from './task-context.ts'

export type EndContext = Pick<TaskContext, 'driver' | 'sentinel' | 'deaths' | 'clock'>

/**
 * Stops a primary that is being deleted or has been replaced, so that it does not run beside its successor.
 *
 * @throws AgentError StillCalled if the API server says that the pod is no longer to be ended: it answers again, and
 * our cache is stale.
 */
export async function stopPrimary(
  work: EndContext & SaveLastContext & Pick<TaskContext, 'inquiry' | 'wayOf'>,
  task: TaskOf<'stopPrimary'>,
  signal: AbortSignal,
): Promise<void> {
  const { pod, lease, lastSave } = task
  if (!pod.terminating && lease.ending === pod.uid && (await isSpared(work, pod, lease, signal)))
    throw new AgentError('StillCalled', slotName(lease))
  const first = pod.containers[0]?.name ?? ''
  const why = pod.terminating ? 'its pod is being deleted' : 'another pod takes its slot'
  const isStanding = await saveLast(work, task, signal)
  if (!pod.terminating && lease.holder.uid !== pod.uid) await letSuccessorBeReady(work, task, signal)
  // Its heir may have been made since it is being deleted.
  const heir = work.wayOf(pod.uid)
  if (lastSave !== undefined && heir !== undefined) {
    const watches = await watchesOf(work.sentinel, pod.uid, signal)
    await leadTo(work.sentinel, watches, { heir, lastsMs: redirectLastsMs }, signal)
  }
  await endPod(work, pod, first, { what: `was ended: ${why}`, isStanding }, signal)
  work.log.info({ pod: pod.name, slot: slotName(lease), why }, 'primary ended')
}

/** A successor whose kubelet takes longer is not ready for another reason, ms. */
const readyMs = 3_000
const askAgainMs = 100

/**
 * Keeps a primary that is stopped for its successor until the successor is ready. The kubelet takes a pod out of its Services once its app
 * has ended, and may take a second to see that another pod is ready: in between a Service would have no endpoint, and refuse connections.
 * Connections to this pod go to the successor meanwhile.
 */
async function letSuccessorBeReady(
  { sentinel, inquiry, clock, log }: EndContext & Pick<TaskContext, 'inquiry' | 'log'>,
  { pod, lease }: TaskOf<'stopPrimary'>,
  signal: AbortSignal,
): Promise<void> {
  const until = clock.monotonic() + readyMs
  const { namespace, holder } = lease
  try {
    // Otherwise it would run on beside its successor.
    const isStopped = () => sentinel.keep(handoverStop(pod), 2 * readyMs, signal)
    if (!(await isStopped())) return
    if (!(await close(sentinel, await watchesOf(sentinel, pod.uid, signal), signal))) return
    while (
      clock.monotonic() < until &&
      (await isStopped()) &&
      !(await inquiry.isReady({ ...holder, namespace }, signal))
    )
      await clock.sleep(askAgainMs, signal)
  } catch (error) {
    signal.throwIfAborted()
    log.warn({ err: error, pod: pod.name }, 'cannot wait until the successor of a primary is ready')
  }
}

/** Without an answer from the API server the primary is stopped: another pod may get its slot at any moment. */
async function isSpared(
  { inquiry }: Pick<TaskContext, 'inquiry'>,
  { uid }: PodView,
  lease: SlotLease,
  signal: AbortSignal,
): Promise<boolean> {
  try {
    const now = await inquiry.lease(lease, signal)
    return isStillCalled(uid, lease, now)
  } catch (error) {
    signal.throwIfAborted()
    if (!isKubeError(error)) throw error
    return false
  }
}

/** A kill that takes longer is stuck in the kernel; by then the pod cannot be reached anyway. */
const killPatienceMs = 1_000
/** Stopped processes do nothing more once they are killed, also while the kernel still frees their memory. */
const standingPatienceMs = 20

/**
 * Redirects connections away from a primary, kills it and declares its death, in this order. The redirect comes first,
 * or clients would find no server. The declaration comes once no process of the pod can change what others see. A
 * process that cannot be found does not run.
 */
export async function endPod(
  work: EndContext,
  pod: PodView,
  container: string,
  { what, isStanding = false }: { readonly what: string; readonly isStanding?: boolean },
  signal: AbortSignal,
): Promise<void> {
  const { sentinel, deaths, clock } = work
  const watches = await watchesOf(sentinel, pod.uid, signal)
  const isRedirected = await close(sentinel, watches, signal)
  const running = await runningOf(work, pod, signal)
  const killed = Promise.all([
    endWatched(sentinel, watches),
    ...running.map(({ init }) => endTree(sentinel, init)),
  ])
  // It may fail while the death is declared.
  killed.catch(() => undefined)
  const over = new AbortController()
  const patienceMs = isStanding ? standingPatienceMs : killPatienceMs
  await Promise.race([killed, clock.sleep(patienceMs, over.signal).catch(() => undefined)])
  over.abort()
  await deaths.declare(pod, container, what, { isRedirected })
  await killed
}

/**
 * Ends the processes of a primary that is gone, and removes its watches. Such a pod was deleted without its grace period,
 * and another pod gets its slot at once. The kubelet would let the processes run for that grace period. The sentinel may not
 * watch them, and this agent may never have seen the pod, so the kernel tells which processes are the pod's.
 *
 * @returns true if the API server says that the pod is gone, has finished, or does not belong to its group any more.
 */
export async function endGone(
  work: Pick<TaskContext, 'driver' | 'sentinel' | 'fencing' | 'inquiry' | 'log'>,
  uid: string,
  signal: AbortSignal,
): Promise<boolean> {
  const { driver, sentinel, fencing, inquiry } = work
  const presence = await inquiry.presenceOf(uid, signal)
  const watches = await watchesOf(sentinel, uid, signal)
  if (presence === 'Gone') {
    await endWatchesOf(work, uid, watches, signal)
    const running = await driver.firstProcesses(uid)
    await Promise.all(running.map(process => endTree(sentinel, process)))
  } else for (const { name } of watches) await dropWatch(sentinel, name, signal)
  if (!fencing.view.guarded.has(uid)) return presence !== 'Here'
  // Only now: a fenced primary resumes.
  await sentinel.unguard(uid, signal, fencing.isFenced(uid))
  fencing.unguarded(uid)
  return presence !== 'Here'
}

async function endWatchesOf(
  { sentinel, log }: Pick<TaskContext, 'sentinel' | 'log'>,
  uid: string,
  watches: readonly Watched[],
  signal: AbortSignal,
): Promise<void> {
  if (watches.length === 0) return
  // The heir may have got another slot since, and no agent can redirect connections once the watches are gone.
  await leadTo(sentinel, watches, { heir: nowhere }, signal)
  await close(sentinel, watches, signal)
  await endWatched(sentinel, watches)
  log.info({ uid, watches: watches.map(({ name }) => name) }, 'processes of a deleted pod ended')
  for (const { name } of watches) await unwatch(sentinel, name, signal)
}
