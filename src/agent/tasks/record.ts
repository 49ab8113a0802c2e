/** Records of the writes of a primary, from a save while it runs to the last save. */
import type { SlotPolicy } from '../../api/slot-policy.ts'
import type { TaskOf } from '../decide/task.ts'
import { memoryOf } from '../observe/generations.ts'
import type { PodView } from '../observe/snapshot.ts'
import type { TaskContext } from './task-context.ts'

/** With less memory than this the stop is short anyway, bytes. */
const leastBytes = 64 * 1024 * 1024

/** Generations to keep: the last one, the one before, and an earlier one, of which the successor may need the difference. */
const withEarlierBase = 3

/**
 * `Recorded`: the last save reads only what the primary has written since. `Behind`: so it does, but the successor may still restore
 * an earlier generation, and need the difference to that one.
 */
export type Recorded = 'Recorded' | 'Behind' | 'No'

/** Returns the policy of the last save. */
export const keeping = (policy: SlotPolicy, recorded: Recorded): SlotPolicy =>
  recorded === 'Behind' ? { ...policy, keep: Math.max(policy.keep, withEarlierBase) } : policy

/** Ends what a record has begun in a pod that runs on. */
export const endRecord = (
  { driver, log }: Pick<TaskContext, 'driver' | 'log'>,
  pod: PodView,
): Promise<void> =>
  driver
    .endRecord(pod.uid)
    .catch((error: unknown) => log.warn({ err: error, pod: pod.name }, 'cannot end the record of writes'))

/** Whether a stop of this primary is shorter if the kernel records its writes first. */
export function isWorthRecording(
  { driver, store }: Pick<TaskContext, 'driver' | 'store'>,
  { pod, lease }: Pick<TaskOf<'handOver'>, 'pod' | 'lease'>,
): boolean {
  const last = store.latest(lease)
  if (last === undefined || !driver.recordsOnRequest(pod.uid)) return false
  return [...memoryOf(last).values()].reduce((sum, bytes) => sum + bytes, 0) >= leastBytes
}
