import type { V1Affinity, V1NodeSelectorTerm, V1PreferredSchedulingTerm } from '@kubernetes/client-node'
import { stageLabel, stageReady } from '../../api/stage.ts'
import type { Wire } from '../../kube/object.ts'

type Affinity = Wire<V1Affinity>
type Term = Wire<V1NodeSelectorTerm>
type Preference = Wire<V1PreferredSchedulingTerm>

const onStage = { key: stageLabel, operator: 'In', values: [stageReady] }

/** Adds that the pod goes only to nodes where memory can be brought back. */
export function requireStage(affinity: Affinity | undefined): Affinity {
  const own = affinity?.nodeAffinity
  const terms = own?.requiredDuringSchedulingIgnoredDuringExecution?.nodeSelectorTerms
  return {
    ...affinity,
    nodeAffinity: {
      ...own,
      requiredDuringSchedulingIgnoredDuringExecution: {
        // One of the terms is enough for the scheduler, so each of them has to ask for it.
        nodeSelectorTerms: terms === undefined ? [{ matchExpressions: [onStage] }] : terms.map(withStage),
      },
    },
  }
}

/** An empty term matches no node; with our expression in it, it would match some. */
const withStage = (term: Term): Term =>
  (term.matchExpressions ?? []).length + (term.matchFields ?? []).length === 0
    ? term
    : { ...term, matchExpressions: [...(term.matchExpressions ?? []), onStage] }

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
