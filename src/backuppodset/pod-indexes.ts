import { bySet, setsNamedBy } from '../api/set-label.ts'
import { controllerOf } from '../kube/owner.ts'
import type { Pod } from '../kube/resources.ts'

/** Index of pods by the uid of their controller. */
export const byController = 'controller'

/** The indexes that the pod store needs. */
export const podIndexes: Readonly<Record<string, (pod: Pod) => readonly string[]>> = {
  [bySet]: setsNamedBy,
  [byController]: pod => {
    const uid = controllerOf(pod)?.uid
    return uid === undefined ? [] : [uid]
  },
}
