import type { SlotKey } from '../../api/slot-key.ts'
import type { LocatedPod } from '../criu/memory-driver.ts'
import type { TaskContext } from './task-context.ts'

export type KeepOutContext = Pick<TaskContext, 'sentinel' | 'strangers' | 'log'>

/**
 * Refuses the clients of other slots in an understudy that holds memory of this slot, before that memory listens: their requests would
 * be executed by the wrong application. Redirects of other slots may lead there, because this pod was their heir, too.
 *
 * A failure is logged only: without this slot's application, its own clients would have none.
 *
 * @throws the signal's reason.
 */
export async function keepStrangersOut(
  { sentinel, strangers, log }: KeepOutContext,
  { pod, containers }: LocatedPod,
  slot: SlotKey,
  signal: AbortSignal,
): Promise<void> {
  const [first] = containers
  if (first === undefined) return
  const from = strangers.of(pod.uid, slot)
  // Another first process may have another network, without the rules of before.
  const what = [first.init.pid, first.init.start, ...from].join()
  if (strangers.told(pod.uid) === what) return
  // Until the sentinel answers, this agent does not know which list it has: this one, the one before, or that of an earlier agent.
  strangers.noteTold(pod.uid, undefined)
  try {
    await sentinel.keepOut(first.init, from, signal)
    strangers.noteTold(pod.uid, what)
  } catch (error) {
    signal.throwIfAborted()
    log.warn(
      { err: error, pod: pod.name, from },
      'clients of other slots may reach a pod that was their heir',
    )
  }
}
