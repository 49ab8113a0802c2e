import type { Task } from '../decide/task.ts'
import { checkpoint } from './checkpoint.ts'
import { copyMemory } from './copy-memory.ts'
import { discard } from './discard.ts'
import { fetch } from './fetch.ts'
import { freeze } from './freeze.ts'
import { guard, unguard } from './guard.ts'
import { handOver } from './hand-over.ts'
import { leaveServices } from './leave-services.ts'
import { probe } from './probe.ts'
import { promote } from './promote.ts'
import { reachHeir } from './reach-heir.ts'
import { redirect } from './redirect.ts'
import { replicate } from './replicate.ts'
import { sayGo } from './say-go.ts'
import { stopPrimary } from './stop-primary.ts'
import type { TaskContext } from './task-context.ts'
import { verifyRestore } from './verify-restore.ts'
import { addPeer, removePeer, unvote, vote } from './voters.ts'
import { wake } from './wake.ts'
import { watchGate } from './watch-gate.ts'
import { watchPrimary } from './watch-primary.ts'

/**
 * Performs a task until it is done or the signal fires.
 *
 * @param succeeded called after each success by a task that repeats.
 * @throws AgentError, CheckpointError, KubeError, the signal's reason.
 */
export function perform(
  work: TaskContext,
  task: Task,
  signal: AbortSignal,
  succeeded: () => void,
): Promise<void> {
  switch (task.type) {
    case 'watchPrimary':
      return watchPrimary(work, task, signal)
    case 'checkpoint':
      return checkpoint(work, task, signal, succeeded)
    case 'handOver':
      return handOver(work, task, signal)
    case 'replicate':
      return replicate(work, task, signal, succeeded)
    case 'fetch':
      return fetch(work, task, signal)
    case 'copyMemory':
      return copyMemory(work, task, signal)
    case 'freeze':
      return freeze(work, task, signal)
    case 'verifyRestore':
      return verifyRestore(work, task, signal)
    case 'discard':
      return discard(work, task, signal)
    case 'promote':
      return promote(work, task, signal)
    case 'probe':
      return probe(work, task, signal)
    case 'stopPrimary':
      return stopPrimary(work, task, signal)
    case 'redirect':
      return redirect(work, task, signal)
    case 'leaveServices':
      return leaveServices(work, task, signal)
    case 'watchGate':
      return watchGate(work, task, signal, succeeded)
    case 'wake':
      return wake(work, task, signal)
    case 'guard':
      return guard(work, task, signal)
    case 'unguard':
      return unguard(work, task, signal)
    case 'addPeer':
      return addPeer(work, task, signal)
    case 'removePeer':
      return removePeer(work, task, signal)
    case 'vote':
      return vote(work, task, signal)
    case 'unvote':
      return unvote(work, task, signal)
    case 'sayGo':
      return sayGo(work, task, signal)
    case 'reachHeir':
      return reachHeir(work, task, signal)
    case 'contradict':
      work.showLife({ name: task.pod.uid, term: task.fence.term }, task.fence.timeoutMs)
      return Promise.resolve()
  }
}
