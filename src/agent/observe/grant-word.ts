import type { GrantWord } from '../../api/grant.ts'
import type { SlotLease } from '../../api/slot-lease.ts'
import { slotName } from '../../checkpoint/manifest.ts'
import type { GrantsView } from './snapshot.ts'

/** Up to this number the Lease rules grants out. */
export const overIn = ({ grant }: SlotLease): number =>
  grant === undefined ? 0 : grant.heir === undefined || grant.isRevoked ? grant.number : grant.number - 1

/**
 * Returns the word of this node about the grants of a slot; undefined: it has no part in them, or it does not know what
 * an earlier agent has done: a primary that this agent has never seen alive may have been reported dead before a reboot.
 *
 * @param lease as the API server has it.
 */
export function grantWordOf(
  node: string,
  lease: SlotLease,
  { records, alive }: GrantsView,
): GrantWord | undefined {
  const name = slotName(lease)
  const { grant } = lease
  const isSource = grant?.source === node
  // While the heir has the slot, the word is about the last primary of this node.
  const epoch = isSource ? lease.epoch - 1 : lease.epoch
  const known = records.get(name)
  const isLast = known?.epoch === lease.epoch - 1 && known.number === grant?.number
  const record = known?.epoch === epoch || isLast ? known : undefined
  // The operator asks for words with a first grant, which names no heir.
  if (grant === undefined && record === undefined) return undefined
  // A prepared message may still leave, also after this agent has read that the grant is revoked: nothing is promised yet.
  const closed =
    record?.answer === 'Prepared' ? record.number - 1 : Math.max(overIn(lease), record?.number ?? 0)
  const isUsed = record?.answer === 'Accepted' || record?.answer === 'Unknown'
  const word = { closed, ...(isUsed && { used: record.number }) }
  const isHeirs = grant?.heir?.node === node
  if (isSource || (lease.node === node && !isHeirs))
    return record !== undefined || alive.get(name) === epoch ? word : undefined
  const isPossibleHeir = isHeirs || lease.holders.includes(node)
  return isPossibleHeir || record !== undefined ? word : undefined
}
