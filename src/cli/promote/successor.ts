import type { BackupPodSet, LastFailover, SlotStatus } from '../../api/backuppodset.ts'
import type { World } from '../world.ts'

/** A slot after its change to another pod, and the set's record of the last failover. */
export interface Successor {
  readonly now: SlotStatus
  readonly lastFailover: LastFailover | undefined
}

/** Returns a value once another pod than `before` is the slot's primary and serves. */
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
