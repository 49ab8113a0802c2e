import type { Pod } from '../../kube/resources.ts'

/** The reference to the controller of a pod: at most one of its owners is. */
export const controllerOf = (pod: Pod) =>
  pod.metadata.ownerReferences?.find(owner => owner.controller === true)
