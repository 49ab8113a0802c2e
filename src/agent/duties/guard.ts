import { AgentError, isAgentError } from '../errors.ts'
import type { SentinelClient } from '../sentinel.ts'
import { watchName } from './deaths.ts'
import type { DutyOf } from './duty.ts'
import type { Work } from './work.ts'

/**
 * Watches what a primary's memory hangs on, and prepares the way from it to its heir. What is watched stays watched when
 * this ends: the sentinel goes on, and the next guard or the next agent takes it over.
 */
export async function guard(work: Work, { pod, way }: DutyOf<'guard'>, signal: AbortSignal): Promise<void> {
  const { sentinel, understudies, deaths } = work
  try {
    const { located } = await understudies.enter(pod, signal)
    for (const { name, containerId, app, init } of located.containers) {
      if (app === undefined) throw new AgentError('NotRunning', `container ${name}`)
      const watch = watchName({ uid: pod.uid, container: name, containerId })
      // A grave that leads to somebody who is not the heir any more would give other memory for this slot's.
      if (way === undefined) await unwatch(sentinel, watch, signal)
      await sentinel.watch(watch, app, signal)
      if (way !== undefined) await sentinel.grave({ name: watch, netns: init, heir: way }, signal)
    }
  } catch (error) {
    understudies.lookAgain(pod.uid)
    throw error
  }
  deaths.guarded(pod)
}

/** Opens the pod again, if it was closed, and takes the watch away. */
export async function dropWatch(
  sentinel: Pick<SentinelClient, 'unwatch' | 'exhume'>,
  name: string,
  signal?: AbortSignal,
): Promise<void> {
  try {
    await sentinel.exhume(name, signal)
  } catch (error) {
    // There was nothing to open, or the pod is gone.
    if (!isAgentError(error, 'SentinelRefused', 'ProcessGone')) throw error
  }
  await unwatch(sentinel, name, signal)
}

/** Takes a watch away, with its grave. One that is not there is fine. */
export async function unwatch(
  sentinel: Pick<SentinelClient, 'unwatch'>,
  name: string,
  signal?: AbortSignal,
): Promise<void> {
  try {
    await sentinel.unwatch(name, signal)
  } catch (error) {
    if (!isAgentError(error, 'SentinelRefused')) throw error
  }
}
