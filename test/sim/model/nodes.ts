/** Node objects, and which nodes a pod may run on. */
import { stageLabel, stageReady } from '../../../src/api/pod-contract.ts'
import { type Node, nodes, type Pod } from '../../../src/kube/resources.ts'
import type { Objects } from '../../../src/kube/testing/api-server.ts'
import type { Machine } from './world.ts'

export const hostnameLabel = 'kubernetes.io/hostname'

export function createNode(server: Objects, { name }: Machine): void {
  const metadata = { name, labels: { [hostnameLabel]: name, [stageLabel]: stageReady } }
  server.create(nodes, { apiVersion: 'v1', kind: 'Node', metadata, spec: {} }, undefined)
}

interface Requirement {
  readonly key: string
  readonly operator: string
  readonly values?: readonly string[] | undefined
}

const holds = ({ operator, values = [] }: Requirement, value: string | undefined): boolean =>
  operator === 'NotIn'
    ? value === undefined || !values.includes(value)
    : value !== undefined && values.includes(value)

/**
 * True if a scheduler may bind the pod to the node. Without an object, the node has a name and no labels, and its labels are not
 * looked at.
 */
export function mayRun(server: Objects, { affinity }: NonNullable<Pod['spec']>, name: string): boolean {
  const node = server.find<Node>(nodes, { name })
  if (node?.spec?.unschedulable) return false
  const terms = affinity?.nodeAffinity?.requiredDuringSchedulingIgnoredDuringExecution?.nodeSelectorTerms
  if (terms === undefined) return true
  return terms.some(
    ({ matchFields = [], matchExpressions = [] }) =>
      matchFields.every(field => holds(field, name)) &&
      (node === undefined || matchExpressions.every(each => holds(each, node.metadata.labels?.[each.key]))),
  )
}
