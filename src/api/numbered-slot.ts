/** The Lease of a slot that has a number within its group, as its owner sees it. Agents know no numbers of slots. */
import type { Lease } from '../kube/resources.ts'
import { labels } from './labels.ts'
import { numberedName, splitNumber } from './slot-key.ts'
import { parseSlotLease, type SlotLease, slotLeaseBody } from './slot-lease.ts'

export interface NumberedSlotLease extends SlotLease {
  readonly slot: number
}

export const slotLeaseName: (group: string, slot: number) => string = numberedName

/** Returns the number of a slot of this group, by its name; undefined: it is not one of them. */
export function slotNumberIn(group: string, name: string): number | undefined {
  const numbered = splitNumber(name)
  return numbered?.base === group ? numbered.number : undefined
}

/** Returns the content of a slot's Lease, without its owner. */
export function numberedSlotLeaseBody(lease: NumberedSlotLease) {
  const { metadata, spec } = slotLeaseBody(lease)
  const { labels: common, ...rest } = metadata
  return { metadata: { ...rest, labels: { ...common, [labels.slot]: String(lease.slot) } }, spec }
}

/** Parses the Lease of a numbered slot; undefined if it is another Lease or unreadable. */
export function parseNumberedSlotLease(object: Lease): NumberedSlotLease | undefined {
  const lease = parseSlotLease(object)
  if (lease === undefined) return undefined
  const slot = slotNumberIn(lease.group, lease.name)
  if (slot === undefined || object.metadata.labels?.[labels.slot] !== String(slot)) return undefined
  return { ...lease, slot }
}
