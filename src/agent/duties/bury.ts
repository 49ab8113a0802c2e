import { slotName } from '../../checkpoint/manifest.ts'
import { endTree } from '../driver/tree.ts'
import { isAgentError } from '../errors.ts'
import { watchName } from './deaths.ts'
import type { DutyOf } from './duty.ts'
import type { PodView } from './snapshot.ts'
import type { Work } from './work.ts'

/** Ends a primary that is being deleted or has been replaced, so that it does not run on beside its successor. */
export async function bury(work: Work, { pod, lease }: DutyOf<'bury'>, signal: AbortSignal): Promise<void> {
  const first = pod.containers[0]?.name ?? ''
  const why = pod.terminating ? 'its pod is being deleted' : 'another pod was called to its slot'
  await endPod(work, pod, first, `was stopped: ${why}`, signal)
  work.log.info({ pod: pod.name, slot: slotName(lease), why }, 'a primary was stopped')
}

/** A kill that takes longer meets something that the kernel does not let go; nobody can reach it any more anyway. */
const killPatienceMs = 1_000

/**
 * Shuts a primary off, ends it and says so, in this order: the way to the heir opens first, or a client would find nobody;
 * and it is told when nothing of it runs that could still change what others see.
 */
export async function endPod(
  work: Work,
  pod: PodView,
  container: string,
  what: string,
  signal: AbortSignal,
): Promise<void> {
  const { sentinel, understudies, deaths, clock, log } = work
  const { located } = await understudies.enter(pod, signal)
  for (const { name, containerId } of located.containers) {
    try {
      await sentinel.bury(watchName({ uid: pod.uid, container: name, containerId }), signal)
    } catch (error) {
      // Never watched, or no grave could be prepared: the end of the processes is what matters.
      if (!isAgentError(error, 'SentinelRefused', 'ProcessGone')) throw error
      log.info({ pod: pod.name, container: name, problem: error.message }, 'no grave')
    }
  }
  const killed = Promise.all(located.containers.map(({ init }) => endTree(sentinel, init)))
  const over = new AbortController()
  await Promise.race([killed, clock.sleep(killPatienceMs, over.signal).catch(() => undefined)])
  over.abort()
  await deaths.declare(pod, container, what)
  await killed
}
