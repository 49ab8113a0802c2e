import type { Api } from '../../kube/api.ts'
import { isKubeError } from '../../kube/errors.ts'
import { type Pod, pods } from '../../kube/resources.ts'

/** Reads a pod from the API server, bypassing our cache; undefined if it does not exist. @throws KubeError. */
export type ReadPod = (
  ref: { readonly namespace: string; readonly name: string },
  signal: AbortSignal,
) => Promise<Pod | undefined>

export const readPodWith =
  (api: Pick<Api, 'get'>): ReadPod =>
  async ({ namespace, name }, signal) => {
    try {
      return await api.get(pods, { namespace, name }, { signal })
    } catch (error) {
      if (isKubeError(error, 'NotFound')) return undefined
      throw error
    }
  }
