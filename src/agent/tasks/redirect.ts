import { isAgentError } from '../../api/agent-errors.ts'
import { slotName } from '../../checkpoint/manifest.ts'
import { isKubeError } from '../../kube/errors.ts'
import { endTree } from '../criu/tree.ts'
import { nowhere } from '../decide/slot-facts.ts'
import type { TaskOf } from '../decide/task.ts'
import { close, endWatched, redirectLastsMs, runningOf, watchesOf } from './remains.ts'
import type { TaskContext } from './task-context.ts'

type RedirectContext = Pick<TaskContext, 'driver' | 'sentinel' | 'inquiry' | 'clock' | 'log'>

/** Well below `redirectLastsMs`. */
const renewMs = 15_000

/**
 * Pause between questions while no operator leads or the API server does not answer, ms: both may be over soon. Until
 * then the app that the kubelet has started there answers.
 */
const unknownMs = 1_000

/**
 * Redirects connections from a dead primary to the pod that holds its slot now, or is to get it. The redirect prepared
 * during its life led to its heir, which may be another pod by now, or serve another slot. Also ends what still runs of
 * the dead primary.
 *
 * Until another pod holds the slot, the redirect stays closed only while an operator leads that could name one.
 * Otherwise the sentinel opens it after a while: see `redirectLastsMs`.
 */
export async function redirect(
  work: RedirectContext,
  task: TaskOf<'redirect'>,
  signal: AbortSignal,
): Promise<void> {
  const { sentinel, inquiry, clock, log } = work
  const { pod, lease, isAwaited } = task
  await endWatched(sentinel, await watchesOf(sentinel, pod.uid, signal))
  if (!isAwaited) {
    await aim(work, task, task.to, signal)
    return await shut(work, task, task.to, signal)
  }
  let aimedAt: string | undefined
  let isLed = true
  let pauseMs = 0
  for (; ; await clock.sleep(pauseMs, signal)) {
    pauseMs = unknownMs
    try {
      const to = await openTarget(work, task, signal)
      if (to !== aimedAt) await aim(work, task, to, signal)
      aimedAt = to
      const wasLed = isLed
      isLed = await inquiry.operatorLeads(signal)
      if (isLed) await shut(work, task, to, signal)
      else if (wasLed)
        log.warn(
          { pod: pod.name, slot: slotName(lease) },
          'no operator leads, so the redirect of a dead primary may open',
        )
      pauseMs = isLed ? renewMs : unknownMs
    } catch (error) {
      if (!isKubeError(error) || signal.aborted) throw error
      log.warn({ err: error, pod: pod.name }, 'cannot read from the API server which pod takes over')
    }
  }
}

/**
 * Returns where connections may go until another pod holds the slot. The agent first asks the API server about the heir. An
 * heir that is gone has an address that another pod may get. An heir that has had another slot and lost it redirects to the
 * memory of that slot, and no Lease names it as a holder any more.
 */
async function openTarget(
  { inquiry }: RedirectContext,
  { lease, to }: TaskOf<'redirect'>,
  signal: AbortSignal,
): Promise<string> {
  const { heir, namespace, name } = lease
  if (to !== heir?.ip) return to
  return (await inquiry.couldTake({ ...heir, namespace }, name, signal)) ? to : nowhere
}

/** Sets the target of the pod's redirects, whether they are closed yet or not. */
async function aim(
  { sentinel, log }: RedirectContext,
  { pod, lease, isAwaited }: TaskOf<'redirect'>,
  heir: string,
  signal: AbortSignal,
): Promise<void> {
  const lasts = isAwaited ? { lastsMs: redirectLastsMs } : {}
  for (const { name, grave } of await watchesOf(sentinel, pod.uid, signal))
    if (grave !== 'none') await sentinel.prepareRedirect({ name, heir, ...lasts }, signal)
  log.info({ pod: pod.name, slot: slotName(lease), to: heir }, 'connections to a dead primary redirected')
}

/** Keeps clients away from processes in the dead pod's place; ends such a process if it cannot be shut off. */
async function shut(
  work: RedirectContext,
  { pod, isAwaited }: TaskOf<'redirect'>,
  heir: string,
  signal: AbortSignal,
): Promise<void> {
  const { sentinel, log } = work
  const watches = await watchesOf(sentinel, pod.uid, signal)
  const graves = watches.filter(({ grave }) => grave !== 'none')
  if (graves.length > 0) {
    await close(sentinel, graves, signal)
    return
  }
  const lasts = isAwaited ? { lastsMs: redirectLastsMs } : {}
  for (const { watch, init } of await runningOf(work, pod, signal))
    try {
      await sentinel.watch(watch, init, signal)
      await sentinel.prepareRedirect({ name: watch, netns: init, heir, ...lasts }, signal)
      await sentinel.redirect(watch, signal)
    } catch (error) {
      if (!isAgentError(error, 'SentinelRefused')) throw error
      log.warn(
        { err: error, pod: pod.name },
        'cannot redirect connections to a dead primary, so its processes are ended',
      )
      await endTree(sentinel, init)
    }
}
