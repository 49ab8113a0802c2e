import { slotName } from '../../checkpoint/manifest.ts'
import { isAgentError } from '../errors.ts'
import { watchName } from './deaths.ts'
import type { DutyOf } from './duty.ts'
import type { Work } from './work.ts'

/**
 * Ends a primary that is being deleted or has been replaced, so that it does not run on beside its successor. The way to
 * the heir opens first: between the two a client would find nobody.
 */
export async function bury(work: Work, { pod, lease }: DutyOf<'bury'>, signal: AbortSignal): Promise<void> {
  const { sentinel, understudies, deaths, log } = work
  const { located } = await understudies.enter(pod, signal)
  for (const { name, containerId } of located.containers) {
    try {
      await sentinel.bury(watchName({ uid: pod.uid, container: name, containerId }), signal)
    } catch (error) {
      // Never watched, or no grave could be prepared: the end of the processes is what matters.
      if (!isAgentError(error, 'SentinelRefused', 'ProcessGone')) throw error
      log.info({ err: error, pod: pod.name, container: name }, 'no grave')
    }
  }
  await Promise.all(
    located.containers.map(async ({ init }) => {
      try {
        await sentinel.treeKill(init)
      } catch (error) {
        if (!isAgentError(error, 'ProcessGone')) throw error
      }
    }),
  )
  const first = located.containers[0]?.name ?? ''
  const why = pod.terminating ? 'its pod is being deleted' : 'another pod was called to its slot'
  log.info({ pod: pod.name, slot: slotName(lease), why }, 'a primary was stopped')
  await deaths.declare(pod, first, `was stopped: ${why}`)
}
