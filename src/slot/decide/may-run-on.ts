/** Decides whether the scheduler may bind a pod to a node, by what an administrator sets: labels, names and taints. */
import { type Anything, isSet, objectIn, objectsIn, textsIn } from '../../api/unknown.ts'
import type { Node } from '../../kube/resources.ts'

export interface NodeFacts {
  readonly name: string
  readonly labels: Readonly<Record<string, string>>
  readonly taints: readonly { readonly key: string; readonly value?: string; readonly effect: string }[]
}

export const nodeFacts = (name: string, node: Node | undefined): NodeFacts => ({
  name,
  labels: node?.metadata.labels ?? {},
  taints: node?.spec?.taints ?? [],
})

/**
 * Kubernetes itself sets these taints as the node comes, goes, or runs short of a resource. They do not tell for which
 * pods the node is meant: a node that is not ready for a moment, or cordoned, does not lose its copies.
 */
const transient = ['node.kubernetes.io/', 'node.cloudprovider.kubernetes.io/'] as const

/** @param pod spec of a pod, of whatever shape. */
export const mayRunOn = (pod: unknown, node: NodeFacts): boolean =>
  mayStartOn(pod, {
    ...node,
    taints: node.taints.filter(({ key }) => !transient.some(prefix => key.startsWith(prefix))),
  })

/** The same, for a new pod at this moment: transient taints count too. */
export function mayStartOn(pod: unknown, node: NodeFacts): boolean {
  const { nodeSelector, affinity, tolerations } = objectIn(pod)
  const selects = Object.entries(objectIn(nodeSelector)).every(([key, value]) => node.labels[key] === value)
  const { requiredDuringSchedulingIgnoredDuringExecution: required } = objectIn(
    objectIn(affinity)['nodeAffinity'],
  )
  const isNear =
    !isSet(required) || objectsIn(objectIn(required)['nodeSelectorTerms']).some(term => matches(term, node))
  const tolerated = objectsIn(tolerations)
  return (
    selects &&
    isNear &&
    node.taints
      .filter(({ effect }) => effect === 'NoSchedule' || effect === 'NoExecute')
      .every(taint => tolerated.some(it => tolerates(it, taint)))
  )
}

/** A term without requirements matches no node. */
function matches({ matchExpressions, matchFields }: Anything, { labels, name }: NodeFacts): boolean {
  const expressions = objectsIn(matchExpressions)
  const fields = objectsIn(matchFields)
  return (
    expressions.length + fields.length > 0 &&
    expressions.every(it => holds(it, labels)) &&
    fields.every(it => it['key'] === 'metadata.name' && holds(it, { 'metadata.name': name }))
  )
}

function holds({ key, operator, values }: Anything, labels: NodeFacts['labels']): boolean {
  const value = typeof key === 'string' && Object.hasOwn(labels, key) ? labels[key] : undefined
  const wanted = textsIn(values)
  switch (operator) {
    case 'In':
      return value !== undefined && wanted.includes(value)
    case 'NotIn':
      return value === undefined || !wanted.includes(value)
    case 'Exists':
      return value !== undefined
    case 'DoesNotExist':
      return value === undefined
    case 'Gt':
    case 'Lt': {
      const [here, bound] = [integer(value), wanted.length === 1 ? integer(wanted[0]) : undefined]
      if (here === undefined || bound === undefined) return false
      return operator === 'Gt' ? here > bound : here < bound
    }
    default:
      // A selector operator of a later Kubernetes: memory goes only to nodes that are known to be allowed.
      return false
  }
}

const integer = (text: string | undefined): bigint | undefined =>
  text !== undefined && /^-?\d+$/.test(text) ? BigInt(text) : undefined

function tolerates(toleration: Anything, taint: NodeFacts['taints'][number]): boolean {
  const { key, operator = 'Equal', value, effect } = toleration
  const is = (asked: unknown, present: string) => !isSet(asked) || asked === '' || asked === present
  if (!is(effect, taint.effect) || !is(key, taint.key)) return false
  if (operator === 'Exists') return true
  return (operator === 'Equal' || operator === '') && (value ?? '') === (taint.value ?? '')
}
