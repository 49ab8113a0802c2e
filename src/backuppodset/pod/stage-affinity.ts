import type { V1Affinity, V1NodeSelectorTerm, V1PreferredSchedulingTerm } from '@kubernetes/client-node'
import { stageLabel, stageReady } from '../../api/pod-contract.ts'
import type { Wire } from '../../kube/object.ts'

type Affinity = Wire<V1Affinity>
type Term = Wire<V1NodeSelectorTerm>
type Preference = Wire<V1PreferredSchedulingTerm>

const onStage = { key: stageLabel, operator: 'In', values: [stageReady] }

/** Requires a node where memory can be restored. */
export const requireStage = (affinity: Affinity | undefined): Affinity =>
  require(affinity, { matchExpressions: [onStage] })

/** The nodes for a pod that is made to take over, or to be an heir. */
export interface Placement {
  /** Nodes that are preferred, the best first. */
  readonly near?: readonly string[] | undefined
  /** The only node that it may run on. */
  readonly on?: string | undefined
  /** The node that it must not run on. */
  readonly notOn?: string | undefined
  /** The nodes that it runs on only if no other takes it. */
  readonly avoid?: readonly string[] | undefined
  /** Labels that its node must have. The template may ask for other values: then no node is right. */
  readonly nodeSelector?: Readonly<Record<string, string>> | undefined
}

/** Adds a placement to what the affinity already prefers and requires. */
export function withPlacement(
  affinity: Affinity | undefined,
  { near, on, notOn, avoid = [], nodeSelector = {} }: Placement,
): Affinity | undefined {
  const labelled = Object.entries(nodeSelector).map(([key, value]) => ({
    key,
    operator: 'In',
    values: [value],
  }))
  const selected = labelled.length === 0 ? affinity : require(affinity, { matchExpressions: labelled })
  const preferred = near === undefined ? selected : preferNodes(selected, near)
  const away =
    avoid.length === 0
      ? preferred
      : prefer(preferred, [
          // One term: several would let a node that is in only some of them win by other scores.
          { weight: 100, preference: named('NotIn', ...avoid) },
        ])
  const required = on === undefined ? away : require(away, named('In', on))
  return notOn === undefined ? required : require(required, named('NotIn', notOn))
}

/** By field, since the hostname label may differ from the node's name. */
const named = (operator: 'In' | 'NotIn', ...nodes: readonly string[]): Term => ({
  matchFields: nodes.map(node => ({ key: 'metadata.name', operator, values: [node] })),
})

function require(affinity: Affinity | undefined, also: Term): Affinity {
  const own = affinity?.nodeAffinity
  const terms = own?.requiredDuringSchedulingIgnoredDuringExecution?.nodeSelectorTerms
  return {
    ...affinity,
    nodeAffinity: {
      ...own,
      requiredDuringSchedulingIgnoredDuringExecution: {
        // The scheduler needs only one matching term, so each term must contain the requirement.
        nodeSelectorTerms: terms === undefined ? [also] : terms.map(term => both(term, also)),
      },
    },
  }
}

/** An empty term matches no node; with our requirement added, it would match some. */
function both(term: Term, also: Term): Term {
  const { matchExpressions = [], matchFields = [] } = term
  if (matchExpressions.length + matchFields.length === 0) return term
  const expressions = [...matchExpressions, ...(also.matchExpressions ?? [])]
  const fields = [...matchFields, ...(also.matchFields ?? [])]
  return {
    ...(expressions.length > 0 && { matchExpressions: expressions }),
    ...(fields.length > 0 && { matchFields: fields }),
  }
}

/** Prefers these nodes, in this order. */
const preferNodes = (affinity: Affinity | undefined, nodes: readonly string[]): Affinity =>
  prefer(
    affinity,
    nodes.slice(0, 5).map((name, index) => ({
      weight: 100 - 10 * index,
      preference: named('In', name),
    })),
  )

/** Prefers nodes where the pod's memory can be saved. */
export const preferStage = (affinity: Affinity | undefined): Affinity =>
  prefer(affinity, [{ weight: 100, preference: { matchExpressions: [onStage] } }])

function prefer(affinity: Affinity | undefined, terms: readonly Preference[]): Affinity {
  const own = affinity?.nodeAffinity
  return {
    ...affinity,
    nodeAffinity: {
      ...own,
      preferredDuringSchedulingIgnoredDuringExecution: [
        ...(own?.preferredDuringSchedulingIgnoredDuringExecution ?? []),
        ...terms,
      ],
    },
  }
}
