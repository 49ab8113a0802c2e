import type { Pod } from '../../kube/resources.ts'

/** Returns the owner reference of a pod's controller; a pod has at most one. */
export const controllerOf = (pod: Pod) =>
  pod.metadata.ownerReferences?.find(owner => owner.controller === true)
