import type { Api } from '../src/kube/api.ts'
import type { KubeObject } from '../src/kube/object.ts'
import type { Resource } from '../src/kube/resources.ts'

/** The kinds that the playground itself creates. */
const kinds: Readonly<Record<string, { readonly plural: string; readonly namespaced: boolean }>> = {
  ClusterRole: { plural: 'clusterroles', namespaced: false },
  ClusterRoleBinding: { plural: 'clusterrolebindings', namespaced: false },
  EndpointSlice: { plural: 'endpointslices', namespaced: true },
  Node: { plural: 'nodes', namespaced: false },
  Service: { plural: 'services', namespaced: true },
}

/** Applies each object in turn (server-side apply), as field manager `understudy-playground`. */
export async function applyManifests(
  api: Api,
  manifests: readonly object[],
  signal: AbortSignal | undefined,
): Promise<void> {
  for (const manifest of manifests) {
    const { apiVersion = '', kind = '', metadata } = manifest as KubeObject
    const form = kinds[kind]
    if (form === undefined) throw new Error(`no plural known for kind ${kind}`)
    const [group, version] = apiVersion.includes('/') ? apiVersion.split('/') : ['', apiVersion]
    const resource = { group, version, kind, ...form } as Resource<KubeObject>
    await api.patch(
      resource,
      { name: metadata.name, ...(metadata.namespace !== undefined && { namespace: metadata.namespace }) },
      { type: 'apply', body: manifest },
      { fieldManager: 'understudy-playground', force: true, ...(signal && { signal }) },
    )
  }
}
