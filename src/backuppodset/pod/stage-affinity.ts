import type { V1Affinity, V1NodeSelectorTerm } from '@kubernetes/client-node'
import { stageLabel, stageReady } from '../../api/stage.ts'
import type { Wire } from '../../kube/object.ts'

type Affinity = Wire<V1Affinity>
type Term = Wire<V1NodeSelectorTerm>

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

/** Adds that the pod rather goes to nodes where its memory can be saved. */
export function preferStage(affinity: Affinity | undefined): Affinity {
  const own = affinity?.nodeAffinity
  return {
    ...affinity,
    nodeAffinity: {
      ...own,
      preferredDuringSchedulingIgnoredDuringExecution: [
        ...(own?.preferredDuringSchedulingIgnoredDuringExecution ?? []),
        { weight: 100, preference: { matchExpressions: [onStage] } },
      ],
    },
  }
}
