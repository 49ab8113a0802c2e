import type { TaskOf } from '../decide/task.ts'
import type { TaskContext } from './task-context.ts'

type WakeContext = Pick<TaskContext, 'gates' | 'metrics' | 'event' | 'log'>

/**
 * Passes the operator's message to a gate, through a socket that only this node can reach. The gate checks the token,
 * as in any message: without a token this agent could not open it.
 */
export async function wake(work: WakeContext, { pod }: TaskOf<'wake'>, signal: AbortSignal): Promise<void> {
  const { gate } = pod
  const [, kind, token] = /^(primary|hotbackup) ([0-9a-f]{64})$/.exec(gate?.order ?? '') ?? []
  if (gate === undefined) return
  if (kind === undefined || token === undefined) {
    work.metrics.woke('malformed')
    work.event(pod, 'Warning', 'WakeRefused', 'Wake', 'the wake message for the gate is malformed')
    return
  }
  const verdict = await work.gates.tell(pod, gate.containerId, `understudy/1 wake ${token} ${kind}\n`, signal)
  work.metrics.woke(verdict)
  work.log.info({ pod: pod.name, kind, verdict }, 'wake message sent to a gate')
  if (verdict !== 'woken' && verdict !== 'already')
    work.event(pod, 'Warning', 'WakeRefused', 'Wake', `the gate answered ${verdict}`)
}
