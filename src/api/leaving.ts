/** Nodes that are being emptied. */

import type { Node } from '../kube/resources.ts'
import { drainCondition } from './drain.ts'
import { annotations } from './labels.ts'
import { isOutOfService } from './out-of-service.ts'

/**
 * The taints of a node that is to be emptied. Kubernetes keeps the first one on cordoned nodes; the autoscalers write the
 * others before they evict the pods of a node.
 */
const leavingTaints = [
  'node.kubernetes.io/unschedulable',
  'ToBeDeletedByClusterAutoscaler',
  'karpenter.sh/disrupted',
] as const

/** Returns why the node is being emptied; undefined: it is not, or it is unknown. No slot moves to such a node. */
export function leavingOf(node: Node | undefined): string | undefined {
  if (node === undefined) return undefined
  const { spec, status } = node
  if (spec?.unschedulable === true) return 'it is cordoned'
  const taint = spec?.taints?.find(({ key }) => leavingTaints.some(each => each === key))
  if (taint !== undefined) return `it has the taint ${taint.key}`
  return status?.conditions?.some(({ type, status: value }) => type === drainCondition && value === 'True')
    ? `its condition ${drainCondition} is True`
    : undefined
}

/**
 * Returns why the primaries of the node have to leave it; undefined: they need not. An administrator may want to keep them on
 * a cordoned node. Nothing runs on a node that is out of service, so there is nothing to move.
 */
export const drainOf = (node: Node | undefined): string | undefined =>
  node === undefined ||
  node.metadata.annotations?.[annotations.stayRequested] ||
  isOutOfService(node.spec?.taints)
    ? undefined
    : leavingOf(node)
