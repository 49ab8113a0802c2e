import type { Clock } from '../../kube/clock.ts'
import type { Log } from '../../kube/log.ts'
import type { PodView } from '../observe/snapshot.ts'
import type { PodCondition } from '../report/conditions.ts'

/** Writes conditions of pods, at most one of a pod at a time. */
export interface ConditionWriter {
  /** Begins to write it, unless a condition of this pod is being written: a pass follows the end of that write. */
  write(pod: PodView, condition: PodCondition, signal: AbortSignal): void
}

export interface ConditionWriterOptions {
  readonly patch: (pod: PodView, condition: PodCondition, signal: AbortSignal) => Promise<object | undefined>
  /** Called after each write, also a failed one. */
  readonly changed: () => void
  readonly clock: Pick<Clock, 'sleep'>
  readonly log: Log
}

const pauseMs = 1_000
const lookAgainMs = 200

export function createConditionWriter(options: ConditionWriterOptions): ConditionWriter {
  const { patch, changed, clock, log } = options
  /** Uids of pods with a condition being written. */
  const writing = new Set<string>()
  return {
    write(pod, condition, signal) {
      if (writing.has(pod.uid)) return
      writing.add(pod.uid)
      patch(pod, condition, signal)
        // The cache does not show yet what has changed.
        .then(written => (written ? undefined : clock.sleep(lookAgainMs, signal)))
        .catch(async (error: unknown) => {
          if (!signal.aborted) log.warn({ err: error, pod: pod.name }, 'cannot write a condition')
          await clock.sleep(pauseMs, signal).catch(() => undefined)
        })
        .finally(() => {
          writing.delete(pod.uid)
          changed()
        })
    },
  }
}
