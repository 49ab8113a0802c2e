import type { KubeObject } from '../kube/object.ts'
import { labels } from './labels.ts'

/** Index of objects by the set that their label names, `namespace/set`. */
export const bySet = 'set'

/** Returns the key of the set that an object's label names, if it has one. */
export function setsNamedBy({ metadata }: Pick<KubeObject, 'metadata'>): readonly string[] {
  const set = metadata.labels?.[labels.set]
  return set === undefined ? [] : [`${metadata.namespace}/${set}`]
}
