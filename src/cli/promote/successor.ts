import type { BackupPodSet, LastFailover, SlotStatus } from '../../api/backuppodset.ts'
import type { World } from '../world.ts'

/** Who holds a slot after another pod, and what the status says of how it came to that. */
export interface Successor {
  readonly now: SlotStatus
  readonly lastFailover: LastFailover | undefined
}

/** Once somebody else than this pod holds the slot and serves. */
export function successorIn(
  { sets }: World,
  set: BackupPodSet,
  slot: number,
  before: string,
): Successor | undefined {
  const status = sets.find(({ metadata }) => metadata.name === set.metadata.name)?.status
  const now = status?.slots?.find(it => it.slot === slot)
  if (now === undefined || now.pod === before || !now.ready) return undefined
  return { now, lastFailover: status?.lastFailover }
}
