import type { Api } from '../../kube/api.ts'

export interface NodeOwner {
  readonly apiVersion: 'v1'
  readonly kind: 'Node'
  readonly name: string
  readonly uid: string
}

interface Review {
  readonly status?: { readonly userInfo?: { readonly extra?: Readonly<Record<string, readonly string[]>> } }
}

/**
 * Returns the Node to which our token is bound, as an owner. The API server tells this to each client about its own
 * token, so the agent needs no right to read Nodes. Undefined: the token is bound to no node, or to another node than
 * ours.
 *
 * @throws KubeError
 */
export async function ownNode(
  api: Pick<Api, 'request'>,
  node: string,
  signal: AbortSignal,
): Promise<NodeOwner | undefined> {
  const { body } = await api.request('POST', '/apis/authentication.k8s.io/v1/selfsubjectreviews', {
    body: { apiVersion: 'authentication.k8s.io/v1', kind: 'SelfSubjectReview' },
    signal,
  })
  const extra = (body as Review).status?.userInfo?.extra
  const [name] = extra?.['authentication.kubernetes.io/node-name'] ?? []
  const [uid] = extra?.['authentication.kubernetes.io/node-uid'] ?? []
  return name !== node || uid === undefined ? undefined : { apiVersion: 'v1', kind: 'Node', name, uid }
}
