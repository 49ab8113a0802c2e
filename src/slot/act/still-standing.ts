import { KubeError } from '../../kube/errors.ts'
import type { Standing } from '../decide/actions.ts'
import { reportOf } from '../decide/knowledge.ts'
import type { SlotContext } from './context.ts'
import { readReport } from './read-report.ts'

/**
 * Asks the API server whether a primary is still stopped for its successor, by the last report of its node. With a
 * stale watch, it may have resumed since, and its work since then would be lost. The same holds if this process was
 * suspended since the decision.
 *
 * @throws KubeError Conflict if it is not stopped: the cache will show that.
 */
export async function requireStanding(
  { urgentApi, monotonic, signal }: Pick<SlotContext, 'urgentApi' | 'monotonic' | 'signal'>,
  { lease, until }: Standing,
): Promise<void> {
  const { node, holder, handovers } = lease
  const status = node === undefined ? undefined : (await readReport(urgentApi, node, signal))?.status
  const said = reportOf(status, lease)
  const isStanding = said?.role === 'source' && said.final === true && said.standsForSeconds !== undefined
  const isOfThis = (said?.standsForHandover ?? handovers) === handovers
  if (isStanding && isOfThis && monotonic() < until) return
  throw new KubeError(
    'Conflict',
    `the pod ${holder.name} is no longer stopped for its successor, which our cache does not show yet`,
  )
}
