/** Which node gets the last generation of a stopped primary first. */
import type { SlotReport } from '../../api/node-report.ts'
import { type SlotLease, successorsNode } from '../../api/slot-lease.ts'
import { isNewer, type Manifest } from '../../checkpoint/manifest.ts'

/**
 * Whether this reader has to wait for another one. A primary that was stopped for its successor stays stopped until
 * the node of the successor has its last generation, and a transfer to another node would take network and processor time
 * from that.
 *
 * @param newest the newest generation on this node.
 * @param reportOf what that node reports about the slot; undefined: nothing.
 */
export function isLater(
  reader: string,
  lease: SlotLease,
  newest: Pick<Manifest, 'epoch' | 'generation' | 'final'> | undefined,
  reportOf: (node: string) => SlotReport | undefined,
): boolean {
  const first = successorsNode(lease)
  if (first === undefined || reader === first || newest?.final !== true) return false
  const said = reportOf(first)
  if (said === undefined) return true
  const { epoch = newest.epoch, generation } = said
  return isNewer(newest, { epoch, generation })
}
