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
  for (;;) {
    try {
      await reach(to, signal)
    } catch (error) {
      signal.throwIfAborted()
      log.debug({ problem: messageOf(error), to: to.address }, 'no connection to the agent of the heir')
    }
    await clock.sleep(pauseMs, signal)
  }
}
