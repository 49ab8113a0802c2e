/** Which node gets the newest generation first when a primary makes room for its successor. */
import type { SlotReport } from '../../api/node-report.ts'
import { type SlotLease, successorsNode } from '../../api/slot-lease.ts'
import { isNewer, type Manifest } from '../../checkpoint/manifest.ts'

/**
 * Whether this reader has to wait for another one. A primary that was stopped for its successor stays stopped until
 * the node of the successor has its last generation, and a transfer to another node would take network and processor time
 * from that. The same is true for a primary that was deleted: the node of its heir comes first, which is the first of the holders. Once another pod is
 * called, the node of that pod comes first until it is on stage.
 *
 * @param newest the newest generation on this node.
 * @param reportOf what that node reports about the slot; undefined: nothing.
 * @param isLeaving the pod that was saved is being deleted, and its hook is not over.
 */
export function isLater(
  reader: string,
  lease: SlotLease,
  newest: Pick<Manifest, 'epoch' | 'generation' | 'final' | 'source'> | undefined,
  reportOf: (node: string) => SlotReport | undefined,
  isLeaving: boolean,
): boolean {
  if (newest === undefined) return false
  const stage = stageOf(lease, newest, isLeaving)
  const first =
    stage === 'Called' ? lease.node : stage === 'Awaited' ? lease.holders[0] : successorsNode(lease)
  if (stage === 'None' || first === undefined || reader === first) return false
  const said = reportOf(first)
  // Nothing says that an heir's node takes part. It is heard of before its pod is called.
  if (said === undefined) return stage !== 'Awaited'
  const { epoch = newest.epoch, generation } = said
  if (isNewer(newest, { epoch, generation })) return true
  // A source says how it could restore its copy only while its primary is not on stage yet.
  return stage === 'Called' && said.role === 'source' && said.usable !== undefined
}

/** Why a node comes first: its pod was called, its pod is the heir of a deleted one, or its pod is to take the slot over. */
function stageOf(
  { node, heir }: SlotLease,
  { source, final }: Pick<Manifest, 'final' | 'source'>,
  isLeaving: boolean,
): 'Called' | 'Awaited' | 'HandedOver' | 'None' {
  if (isLeaving && node !== source.node) return 'Called'
  if (final === true) return 'HandedOver'
  return isLeaving && heir !== undefined ? 'Awaited' : 'None'
}
