/** Owner references: which object another one belongs to. */
import { type KubeObject, keyOfRef } from './object.ts'
import { apiVersionOf, type Resource } from './resources.ts'
import type { Change } from './store.ts'

/** Returns the owner reference of an object's controller; an object has at most one. */
export const controllerOf = (object: KubeObject) =>
  object.metadata.ownerReferences?.find(owner => owner.controller === true)

/**
 * The reference that makes an object of this resource the controller of another object, which is deleted after it.
 * Without blockOwnerDeletion, which needs a permission on finalizers.
 */
export const ownerReference = (
  resource: Resource<KubeObject>,
  { name, uid }: { readonly name: string; readonly uid: string },
) => ({ apiVersion: apiVersionOf(resource), kind: resource.kind, name, uid, controller: true }) as const

/** Returns the keys of the controllers, of this resource, that a changed object has or had. */
export function controllersIn(change: Change<KubeObject>, resource: Resource<KubeObject>): readonly string[] {
  const keys = [change.object, ...(change.old ? [change.old] : [])].flatMap(object => {
    const owner = controllerOf(object)
    if (owner?.kind !== resource.kind || groupOf(owner.apiVersion) !== resource.group) return []
    const namespace = resource.namespaced ? object.metadata.namespace : undefined
    return [keyOfRef({ namespace, name: owner.name })]
  })
  return [...new Set(keys)]
}

/** `apps` of `apps/v1`; empty for `v1`. */
const groupOf = (apiVersion: string): string => apiVersion.slice(0, Math.max(0, apiVersion.indexOf('/')))
