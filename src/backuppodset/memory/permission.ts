/** Whether memory is allowed in a namespace, by the label that its administrator gave it. */
import { memoryPermission } from '../../api/memory-permission.ts'
import type { Api } from '../../kube/api.ts'
import { type Namespace, namespaces } from '../../kube/resources.ts'
import type { Store } from '../../kube/store.ts'

/** The cache of the namespaces with the label, or `everywhere` if none is needed. */
export type Permitted = Pick<Store<Namespace>, 'get'> | 'everywhere'

/** True if memory is allowed in this namespace, by the cache. */
export const isPermitted = (permitted: Permitted, namespace: string): boolean =>
  permitted === 'everywhere' || permitted.get(namespace) !== undefined

/** Asks the API server whether memory is allowed in this namespace. @throws KubeError. */
export async function askPermission(
  api: Pick<Api, 'get'>,
  name: string,
  signal: AbortSignal,
): Promise<boolean> {
  const { metadata } = await api.get(namespaces, { name }, { signal })
  return metadata.labels?.[memoryPermission.label] === memoryPermission.value
}
