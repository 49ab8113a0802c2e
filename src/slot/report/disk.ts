import { reasons } from '../../api/reasons.ts'
import type { NodeView, SlotMemory, Word } from '../decide/memory-view.ts'

/**
 * The cure for each reason that agents report; the agents' own messages contain figures that change from report to
 * report.
 */
const cures: Readonly<Record<string, string>> = {
  DiskFull: 'raise --disk-budget of the agents, or keep fewer slots on a node',
  DiskShareFull:
    'its namespace has its share of --disk-budget there: raise --namespace-share or --disk-budget of the agents, or keep fewer slots on a node',
  DiskLow: 'free space on the disk of the node',
  KeyMissing: 'apply deploy/agent, and run the operator, which creates and encrypts the parts of the key',
}
const other = 'see the NodeReport'
const listed = 5

/**
 * Returns a warning for slots whose memory is only in the RAM of nodes, because no node that keeps it can write to its
 * disk.
 */
export function diskCaveats(
  slots: readonly SlotMemory[],
  nodes: ReadonlyMap<string, Pick<NodeView, 'diskTrouble'>>,
): readonly Word[] {
  const troubleOn = (node: string, { copies }: SlotMemory) =>
    nodes.get(node)?.diskTrouble ?? copies.find(copy => copy.node === node)?.report.diskReason
  const without = slots.filter(
    slot =>
      slot.lease.holders.length > 0 && slot.lease.holders.every(node => troubleOn(node, slot) !== undefined),
  )
  if (without.length === 0) return []
  const numbers = without.map(({ lease }) => lease.slot).sort((a, b) => a - b)
  const named = numbers.slice(0, listed).join(', ')
  const more = numbers.length > listed ? ` and ${numbers.length - listed} more` : ''
  const troubles = without
    .flatMap(slot => slot.lease.holders.map(node => ({ node, reason: troubleOn(node, slot) ?? '' })))
    .sort((a, b) => (a.node < b.node ? -1 : 1))
  const why = [...Map.groupBy(troubles, ({ reason }) => reason)].map(([reason, on]) => {
    const named = [...new Set(on.map(({ node }) => node))].slice(0, listed)
    return `${reason} on ${named.join(', ')}: ${cures[reason] ?? other}`
  })
  return [
    {
      reason: reasons.notOnDisk,
      message: `newer memory of slot ${named}${more} is on no disk and would be lost with its nodes (${why.join('; ')})`,
    },
  ]
}
