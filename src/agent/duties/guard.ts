import { AgentError } from '../errors.ts'
import { watchName } from './deaths.ts'
import type { DutyOf } from './duty.ts'
import { letEarlierGo } from './hand-over.ts'
import { graveLastsMs, unwatch } from './remains.ts'
import type { Work } from './work.ts'

/**
 * Watches what a primary's memory hangs on, and prepares the way from it to its heir. What is watched stays watched when
 * this ends: the sentinel goes on, and the next guard or the next agent takes it over.
 */
export async function guard(work: Work, duty: DutyOf<'guard'>, signal: AbortSignal): Promise<void> {
  const { pod, way } = duty
  const { sentinel, understudies, deaths } = work
  try {
    const { located } = await understudies.enter(pod, signal)
    const containers = located.containers.map(container => ({
      ...container,
      watch: watchName({ uid: pod.uid, container: container.name, containerId: container.containerId }),
    }))
    // All of them before any grave: where no grave can be had each death is noticed all the same.
    for (const { watch, name, app } of containers) {
      if (app === undefined) throw new AgentError('NotRunning', `container ${name}`)
      // A grave that leads to somebody who is not the heir any more would give other memory for this slot's.
      if (way === undefined) await unwatch(sentinel, watch, signal)
      await sentinel.watch(watch, app, signal)
    }
    deaths.guarded(pod)
    if (way !== undefined)
      for (const { watch, init } of containers)
        await sentinel.grave({ name: watch, netns: init, heir: way, lastsMs: graveLastsMs }, signal)
    await letEarlierGo(work, duty, signal)
  } catch (error) {
    understudies.lookAgain(pod.uid)
    throw error
  }
}
