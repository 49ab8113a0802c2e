import type { BackupPodSet } from '../api/backuppodset.ts'
import type { SlotPolicy } from '../api/slot-policy.ts'
import { isKubeError } from '../kube/errors.ts'
import { refOfKey } from '../kube/object.ts'
import type { Lease } from '../kube/resources.ts'
import type { Store } from '../kube/store.ts'
import { abandonedLeases, type SlotLeaseObject } from '../slot/observe/slot-leases.ts'

export interface AbandonedDeps {
  readonly memory?: { readonly leases: Store<Lease> } | undefined
  /** Writes a policy into a slot's Lease, if that is still this version. @throws KubeError. */
  readonly writePolicy: (
    setKey: string,
    lease: Lease,
    policy: SlotPolicy,
    signal: AbortSignal,
  ) => Promise<unknown>
}

/**
 * Returns the Leases of slots that agents should know to be abandoned.
 *
 * @param set that has this key now; undefined: there is none.
 */
export function abandonedOf(
  { memory }: AbandonedDeps,
  key: string,
  set: BackupPodSet | undefined,
): readonly SlotLeaseObject[] {
  if (memory === undefined) return []
  const { namespace = '', name } = refOfKey(key)
  const stays = set?.metadata.deletionTimestamp === undefined
  return abandonedLeases(memory.leases, { namespace, name }, stays ? set?.metadata.uid : undefined)
}

/**
 * Tells agents that no operator looks after the slots of a deleted set. Their pods end within their grace period then,
 * and no agent waits for a successor. The garbage collector deletes the same Leases, at its own pace.
 */
export async function pauseAll(
  { writePolicy }: AbandonedDeps,
  key: string,
  leases: readonly SlotLeaseObject[],
  signal: AbortSignal,
): Promise<void> {
  await Promise.all(
    leases.map(async ({ lease, object }) => {
      try {
        if (lease.policy) await writePolicy(key, object, { ...lease.policy, paused: true }, signal)
      } catch (error) {
        // The Lease has changed, and its change causes another pass, or it is gone.
        if (!isKubeError(error, 'Conflict', 'NotFound')) throw error
      }
    }),
  )
}
