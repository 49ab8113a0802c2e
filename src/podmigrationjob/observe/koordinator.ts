/** Objects of Koordinator's group are ours only where their kind is defined by us. */
import { koordinatorMark } from '../../api/pod-migration-job.ts'
import type { Api } from '../../kube/api-types.ts'
import type { Clock } from '../../kube/clock.ts'
import { isKubeError } from '../../kube/errors.ts'
import type { KubeObject } from '../../kube/object.ts'
import { customResourceDefinitions, type Resource } from '../../kube/resources.ts'

/** The answer is remembered for this time, ms. */
export const rememberedMs = 30_000

/**
 * Returns a function that says whether the operator serves this kind of Koordinator's. Where Koordinator itself is installed, its own
 * controller acts for these objects: two would evict twice.
 * @throws KubeError if the API server does not say.
 */
export function createKoordinatorCheck(
  { plural, group }: Resource<KubeObject>,
  api: Pick<Api, 'get'>,
  clock: Pick<Clock, 'monotonic'>,
) {
  let known: { readonly isServed: boolean; readonly at: number } | undefined
  return async (signal: AbortSignal): Promise<boolean> => {
    if (known !== undefined && clock.monotonic() - known.at < rememberedMs) return known.isServed
    const name = `${plural}.${group}`
    const definition = await api
      .get(customResourceDefinitions, { name }, { signal })
      .catch((error: unknown) => {
        if (isKubeError(error, 'NotFound')) return undefined
        throw error
      })
    const isServed = definition?.metadata.labels?.[koordinatorMark.label] === koordinatorMark.value
    known = { isServed, at: clock.monotonic() }
    return isServed
  }
}
