import type { TaskOf } from '../decide/task.ts'
import type { TaskContext } from './task-context.ts'

type WatchGateContext = Pick<TaskContext, 'gates' | 'metrics' | 'event' | 'clock'>

const everyMs = 10_000

/** Polls a gate for the number of messages it has refused. Such messages change nothing, but show a client that tries. */
export async function watchGate(
  work: WatchGateContext,
  { pod }: TaskOf<'watchGate'>,
  signal: AbortSignal,
  succeeded: () => void,
): Promise<void> {
  const { gate } = pod
  if (gate === undefined) return
  for (let before = 0; ; await work.clock.sleep(everyMs, signal)) {
    const refused = await work.gates.refused(pod, gate.containerId, signal)
    succeeded()
    if (refused === before) continue
    work.metrics.refusedAtGate(refused - before)
    const note = `its gate has refused ${refused} messages without a valid token`
    work.event(pod, 'Warning', 'WakeRefused', 'Watch', note)
    before = refused
  }
}
