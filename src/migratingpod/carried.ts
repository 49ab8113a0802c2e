/** Labels and annotations that go with a pod to the next one. */
import type { PodTemplate } from '../api/backuppodset.ts'
import { labels as ours, prefix } from '../api/labels.ts'

/** The metadata of a pod, as far as it moves. */
export interface Carried {
  readonly labels: Readonly<Record<string, string>>
  readonly annotations: Readonly<Record<string, string>>
}

/** Bounds, well below those of a template: what users add to a pod must not make the spec of its set invalid. */
export const carriedLimits = {
  /** Labels of template and pod together. */
  labels: 100,
  annotations: 64,
  /** Characters of one annotation, with its key. */
  annotation: 4_096,
  /** Characters of all annotations together. */
  total: 16_384,
} as const

/**
 * Returns what users and programs have added to a pod of this template. Its values for keys of the template do not count:
 * the template decides about them.
 */
export function carriedBy(
  { labels = {}, annotations = {} }: Partial<Carried>,
  template: PodTemplate['metadata'],
  /** Keys that the template had before, too. */
  former: ReadonlySet<string> = new Set(),
): Carried {
  const room = Math.max(0, carriedLimits.labels - Object.keys(template?.labels ?? {}).length)
  let left: number = carriedLimits.total
  const fits = ([key, value]: readonly [string, string]) => {
    const length = key.length + value.length
    if (length > carriedLimits.annotation || length > left) return false
    left -= length
    return true
  }
  return {
    labels: Object.fromEntries(
      added(labels, template?.labels)
        .filter(([key]) => key !== ours.type && !former.has(key))
        .slice(0, room),
    ),
    annotations: Object.fromEntries(
      added(annotations, template?.annotations)
        .filter(([key]) => !isOfNode(key) && !former.has(key))
        .filter(fits)
        .slice(0, carriedLimits.annotations),
    ),
  }
}

/** Returns the entries that the template does not have, in an order that does not depend on their age. */
const added = (
  all: Readonly<Record<string, string>>,
  ofTemplate: Readonly<Record<string, string>> | undefined = {},
): readonly (readonly [string, string])[] =>
  Object.entries(all)
    .filter(([key]) => !Object.hasOwn(ofTemplate, key) && !key.startsWith(prefix))
    .sort(([a], [b]) => (a < b ? -1 : 1))

/** Words in keys of annotations by which network plugins and injectors describe the pod that they have seen. */
const nodeWords =
  /(^|[./-])(cni|multus|ovn|networks?|network-status|last-applied-configuration|status)([./-]|$)/

/** True for an annotation that describes the pod's place, such as its address: it would be wrong elsewhere. */
const isOfNode = (key: string): boolean => nodeWords.test(key)

/** Returns the template with what is carried. */
export function withCarried(template: PodTemplate, { labels, annotations }: Carried): PodTemplate {
  const merged = { labels: { ...labels, ...template.metadata?.labels } }
  const notes = { ...annotations, ...template.metadata?.annotations }
  return {
    ...template,
    metadata: {
      ...template.metadata,
      ...(Object.keys(merged.labels).length > 0 && merged),
      ...(Object.keys(notes).length > 0 && { annotations: notes }),
    },
  }
}
