import type { V1Affinity, V1NodeSelectorTerm, V1PreferredSchedulingTerm } from '@kubernetes/client-node'
import { stageLabel, stageReady } from '../../api/stage.ts'
import type { Wire } from '../../kube/object.ts'

type Affinity = Wire<V1Affinity>
type Term = Wire<V1NodeSelectorTerm>
type Preference = Wire<V1PreferredSchedulingTerm>

const onStage = { key: stageLabel, operator: 'In', values: [stageReady] }

/** Adds that the pod goes only to nodes where memory can be brought back. */
export const requireStage = (affinity: Affinity | undefined): Affinity =>
  require(affinity, { matchExpressions: [onStage] })

/** Adds that the pod does not go to this node. */
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
        // One of the terms is enough for the scheduler, so each of them has to ask for it.
        nodeSelectorTerms: terms === undefined ? [also] : terms.map(term => both(term, also)),
      },
    },
  }
}

/** An empty term matches no node; with our requirement in it, it would match some. */
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

/** Adds that the pod rather goes to one of these nodes, the first before the others. */
export const preferNodes = (affinity: Affinity | undefined, nodes: readonly string[]): Affinity =>
  prefer(
    affinity,
    nodes.slice(0, 5).map((name, index) => ({
      weight: 100 - 10 * index,
      // A field and not the label of the host's name, which may be another.
      preference: { matchFields: [{ key: 'metadata.name', operator: 'In', values: [name] }] },
    })),
  )

/** Adds that the pod rather goes to nodes where its memory can be saved. */
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
