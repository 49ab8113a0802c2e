import type { BackupPodSetSpec } from './backuppodset.ts'
import { type MigratingPodSpec, movingCheckpointKeys, movingFailoverKeys } from './migrating-pod.ts'

/**
 * Returns the spec of a MigratingPod that begins with the memory of a pod: that of the pod's owner, as far as a MigratingPod has these
 * fields. The Service stays with the source.
 */
export const cloneSpecOf = (
  { checkpoint, failover, template }: MigratingPodSpec | BackupPodSetSpec,
  pod: string,
): MigratingPodSpec => ({
  ...{ template, clonePod: pod },
  ...(checkpoint && { checkpoint: pick(checkpoint, movingCheckpointKeys) }),
  ...(failover && { failover: pick(failover, movingFailoverKeys) }),
})

/** Returns the object with these keys only. */
const pick = <T extends object, K extends keyof T>(all: T, keys: readonly K[]): Pick<T, K> => {
  const part: Partial<Pick<T, K>> = {}
  for (const key of keys) if (key in all) part[key] = all[key]
  return part as Pick<T, K>
}
