import { attend } from './attend.ts'
import { bury } from './bury.ts'
import { checkpoint } from './checkpoint.ts'
import { clear } from './clear.ts'
import type { Duty } from './duty.ts'
import { fetch } from './fetch.ts'
import { freeze } from './freeze.ts'
import { guard } from './guard.ts'
import { handOver } from './hand-over.ts'
import { hold } from './hold.ts'
import { probe } from './probe.ts'
import { promote } from './promote.ts'
import { redirect } from './redirect.ts'
import { trial } from './trial.ts'
import { wake } from './wake.ts'
import type { Work } from './work.ts'

/**
 * Performs a duty until it is done or the signal fires.
 *
 * @param succeeded called after each success by a task that repeats.
 * @throws AgentError, CheckpointError, KubeError, the signal's reason.
 */
export function perform(work: Work, duty: Duty, signal: AbortSignal, succeeded: () => void): Promise<void> {
  switch (duty.type) {
    case 'guard':
      return guard(work, duty, signal)
    case 'checkpoint':
      return checkpoint(work, duty, signal, succeeded)
    case 'handOver':
      return handOver(work, duty, signal)
    case 'hold':
      return hold(work, duty, signal, succeeded)
    case 'fetch':
      return fetch(work, duty, signal)
    case 'freeze':
      return freeze(work, duty, signal)
    case 'trial':
      return trial(work, duty, signal)
    case 'clear':
      return clear(work, duty, signal)
    case 'promote':
      return promote(work, duty, signal)
    case 'probe':
      return probe(work, duty, signal)
    case 'bury':
      return bury(work, duty, signal)
    case 'redirect':
      return redirect(work, duty, signal)
    case 'attend':
      return attend(work, duty, signal, succeeded)
    case 'wake':
      return wake(work, duty, signal)
  }
}
