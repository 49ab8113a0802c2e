/**
 * The kind of a pod, by its labels: `type` for a pod of a set, `role` for a pod of any other owner.
 *
 * The operator writes both labels with the same value in one PATCH. They still differ on pods that an operator of the
 * version before has made or relabelled, and after an edit by hand. Only one of them may decide then, and it depends on
 * the owner alone: `type` of a set's pod is what Services select, what users edit, and what operators and agents of all
 * versions read; `type` of any other pod belongs to its owner.
 */
import { labels, type PodKind } from './labels.ts'

/** The kind of losers of a promotion, off stage. No Service selects it, and no number counts it. */
export const retired = 'retired'

interface Labelled {
  readonly metadata: { readonly labels?: Readonly<Record<string, string>> | undefined }
}

/**
 * Returns the text that names the kind of a pod, which may be none of ours. Undefined: the pod has no such label, or the
 * cache no such pod.
 */
export function kindLabelOf(pod: Labelled | undefined): string | undefined {
  const marks = pod?.metadata.labels
  return marks?.[labels[isOfSet(marks[labels.set]) ? 'type' : 'role']]
}

/** The names of other owners begin with their kind and `_`, which no name of a set can contain. */
const isOfSet = (owner: string | undefined): boolean => owner?.includes('_') !== true

/** Returns the labels that give a pod of a set this kind. They must change in the same write. */
export const kindLabels = (kind: PodKind | typeof retired) => ({ [labels.type]: kind, [labels.role]: kind })
