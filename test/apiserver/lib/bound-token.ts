import { readFile } from 'node:fs/promises'
import type { ControlPlane } from '../../../playground/control-plane.ts'
import { type Api, createApi } from '../../../src/kube/api.ts'

interface Bound {
  readonly namespace: string
  readonly serviceAccount: string
  /** The pod to whose life the token is bound; without it the token is bound to no object. */
  readonly pod?: string
}

/** Returns a service account's token, obtained by TokenRequest as the kubelet does for a pod. */
async function tokenOf(admin: Api, { namespace, serviceAccount, pod }: Bound): Promise<string> {
  const path = `/api/v1/namespaces/${namespace}`
  const boundObjectRef = pod && { apiVersion: 'v1', kind: 'Pod', name: pod }
  const { status, body } = await admin.request('POST', `${path}/serviceaccounts/${serviceAccount}/token`, {
    body: {
      apiVersion: 'authentication.k8s.io/v1',
      kind: 'TokenRequest',
      spec: { expirationSeconds: 3600, ...(boundObjectRef && { boundObjectRef }) },
    },
  })
  const { token } = (body as { status?: { token?: string } }).status ?? {}
  if (token === undefined) throw new Error(`no token: ${status} ${JSON.stringify(body)}`)
  return token
}

/** Returns an API client with such a token. */
export async function apiWithToken(cluster: ControlPlane, admin: Api, bound: Bound): Promise<Api> {
  const token = await tokenOf(admin, bound)
  const credentials = {
    headers: { authorization: `Bearer ${token}` },
    tls: { ca: await readFile(cluster.caPath) },
  }
  return createApi({
    connection: {
      server: cluster.server,
      namespace: undefined,
      proxyUrl: undefined,
      credentials: () => Promise.resolve(credentials),
      invalidate: () => undefined,
    },
  })
}
