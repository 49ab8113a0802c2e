/** Numbers of the pods of a set whose pods are numbered: NAME-0, NAME-1 and so on. */
import type { BackupPodSetStatus } from '../api/backuppodset.ts'
import { splitNumber } from '../api/slot-key.ts'

/**
 * Returns the highest number that a pod of the set has or had, as far as it is known; -1: none. The number of the pod that has a slot is
 * in its Lease, so it outlives the pod and this process.
 *
 * @param names of pods and of holders of slots.
 */
export function lastNumber(
  set: string,
  names: Iterable<string>,
  { slots = [], failovers = [] }: Pick<BackupPodSetStatus, 'slots' | 'failovers'> = {},
): number {
  let last = -1
  const told = [...slots.map(({ pod }) => pod), ...failovers.map(({ to }) => to)]
  for (const name of [...names, ...told]) {
    const numbered = splitNumber(name)
    if (numbered?.base === set) last = Math.max(last, numbered.number)
  }
  return last
}
