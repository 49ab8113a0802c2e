import { messageOf } from '../../kube/errors.ts'
import type { TaskOf } from '../decide/task.ts'
import type { TaskContext } from './task-context.ts'

/** Pause before the next attempt to connect, ms. */
const pauseMs = 5_000

/** Keeps a connection to the agent of the heir: after a death, a new one would take longer than the rest of the takeover. */
export async function reachHeir(
  { reach, clock, log }: Pick<TaskContext, 'reach' | 'clock' | 'log'>,
  { to }: TaskOf<'reachHeir'>,
  signal: AbortSignal,
): Promise<void> {
  let isTold = false
  for (;;) {
    try {
      await reach(to, signal)
      isTold = false
    } catch (error) {
      signal.throwIfAborted()
      const about = { problem: messageOf(error), to: to.address }
      // Nothing else shows a firewall between the nodes: memory needs connections the other way only.
      if (!isTold) log.warn(about, 'no connection to the agent of the heir: no grant can be used there')
      isTold = true
    }
    await clock.sleep(pauseMs, signal)
  }
}
