import { type SlotLease, tookOver } from '../../api/slot-lease.ts'
import type { GrantRecord } from './snapshot.ts'

/**
 * Returns the Lease by which this agent acts: once a grant was accepted, the heir has the slot, whether or not the
 * operator has recorded that yet. Nothing is saved until then.
 *
 * @param record the latest grant of the slot that this agent has used or agreed to. Pure.
 */
export function effectiveLease(lease: SlotLease, record: GrantRecord | undefined): SlotLease {
  if (record?.answer !== 'Accepted' || record.epoch !== lease.epoch) return lease
  const { heir, atLeast } = record
  const { fence: _, grant: __, atLeast: before, node: source, ...rest } = lease
  const keepers = (nodes: readonly string[]) => [
    ...new Set([...nodes, ...(source === undefined ? [] : [source])].filter(node => node !== heir.node)),
  ]
  const least = atLeast ?? before
  return {
    ...rest,
    holder: { name: heir.name, uid: heir.uid },
    epoch: lease.epoch + 1,
    node: heir.node,
    ip: heir.ip,
    heir: undefined,
    holders: keepers(lease.holders),
    kept: lease.kept && keepers(lease.kept),
    containers: undefined,
    ending: undefined,
    handover: undefined,
    handedOverBy: tookOver,
    unsaved: true,
    ...(least && { atLeast: least }),
  }
}
