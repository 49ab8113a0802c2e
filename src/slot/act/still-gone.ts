import type { NumberedSlotLease } from '../../api/numbered-slot.ts'
import { KubeError } from '../../kube/errors.ts'
import { isKept } from '../decide/kept.ts'
import { reportOf, unaskedOf } from '../decide/knowledge.ts'
import { namedBy } from '../decide/origin.ts'
import type { SlotPort } from './context.ts'
import { readReport } from './read-report.ts'

/**
 * Asks the API server for the reports of all nodes that a slot's Lease names, before the slot's incarnation ends because none
 * has a copy. With a stale watch we may see a report from before the first generation was saved.
 *
 * @throws KubeError Conflict if a node has a copy, or does not report that it has none: the cache will show that.
 */
export async function requireGone(
  { urgentApi, signal }: Pick<SlotPort, 'urgentApi' | 'signal'>,
  lease: NumberedSlotLease,
): Promise<void> {
  const answers = await Promise.all(
    namedBy(lease).map(async node => {
      const status = (await readReport(urgentApi, node, signal))?.status
      return { node, status, report: reportOf(status, lease), fresh: status !== undefined }
    }),
  )
  const keepers = answers.flatMap(({ node, report }) => (report && isKept(report) ? [node] : []))
  const unasked = unaskedOf(lease, answers, { isVacant: true, isDeath: false, isLong: true }).map(
    ({ node }) => node,
  )
  const nodes = [...new Set([...keepers, ...unasked])]
  if (nodes.length === 0) return
  throw new KubeError(
    'Conflict',
    `memory of slot ${lease.slot} may be on ${nodes.join(', ')}, which our cache does not show yet`,
  )
}
