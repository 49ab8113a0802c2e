import { labels } from '../api/labels.ts'
import { controllerOf } from '../kube/owner.ts'
import type { Pod } from '../kube/resources.ts'

/** Index of pods by the set that their label names, `namespace/set`. */
export const bySetLabel = 'set'
/** Index of pods by the uid of their controller. */
export const byController = 'controller'

/** The indexes that the pod store needs. */
export const podIndexes: Readonly<Record<string, (pod: Pod) => readonly string[]>> = {
  [bySetLabel]: pod => {
    const set = pod.metadata.labels?.[labels.set]
    return set === undefined ? [] : [`${pod.metadata.namespace}/${set}`]
  },
  [byController]: pod => {
    const uid = controllerOf(pod)?.uid
    return uid === undefined ? [] : [uid]
  },
}
