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

/** Excludes this node. */
export const excludeNode = (affinity: Affinity | undefined, node: string): Affinity =>
  require(affinity, { matchFields: [{ key: 'metadata.name', operator: 'NotIn', values: [node] }] })

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
export const preferNodes = (affinity: Affinity | undefined, nodes: readonly string[]): Affinity =>
  prefer(
    affinity,
    nodes.slice(0, 5).map((name, index) => ({
      weight: 100 - 10 * index,
      // By field, since the hostname label may differ from the node's name.
      preference: { matchFields: [{ key: 'metadata.name', operator: 'In', values: [name] }] },
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
