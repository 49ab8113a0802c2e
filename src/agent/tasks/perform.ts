import { checkpoint } from './checkpoint.ts'
import { discard } from './discard.ts'
import type { Duty } from '../decide/task.ts'
import { fetch } from './fetch.ts'
import { freeze } from './freeze.ts'
import { handOver } from './hand-over.ts'
import { probe } from './probe.ts'
import { promote } from './promote.ts'
import { redirect } from './redirect.ts'
import { replicate } from './replicate.ts'
import { stopPrimary } from './stop-primary.ts'
import type { TaskContext } from './task-context.ts'
import { verifyRestore } from './verify-restore.ts'
import { wake } from './wake.ts'
import { watchGate } from './watch-gate.ts'
import { watchPrimary } from './watch-primary.ts'

/**
 * Performs a duty until it is done or the signal fires.
 *
 * @param succeeded called after each success by a task that repeats.
 * @throws AgentError, CheckpointError, KubeError, the signal's reason.
 */
export function perform(
  work: TaskContext,
  duty: Duty,
  signal: AbortSignal,
  succeeded: () => void,
): Promise<void> {
  switch (duty.type) {
    case 'watchPrimary':
      return watchPrimary(work, duty, signal)
    case 'checkpoint':
      return checkpoint(work, duty, signal, succeeded)
    case 'handOver':
      return handOver(work, duty, signal)
    case 'replicate':
      return replicate(work, duty, signal, succeeded)
    case 'fetch':
      return fetch(work, duty, signal)
    case 'freeze':
      return freeze(work, duty, signal)
    case 'verifyRestore':
      return verifyRestore(work, duty, signal)
    case 'discard':
      return discard(work, duty, signal)
    case 'promote':
      return promote(work, duty, signal)
    case 'probe':
      return probe(work, duty, signal)
    case 'stopPrimary':
      return stopPrimary(work, duty, signal)
    case 'redirect':
      return redirect(work, duty, signal)
    case 'watchGate':
      return watchGate(work, duty, signal, succeeded)
    case 'wake':
      return wake(work, duty, signal)
  }
}
