/** Jobs of Koordinator's group are ours only where its kind is defined by us. */
import { koordinatorJobs, koordinatorMark } from '../../api/pod-migration-job.ts'
import type { Api } from '../../kube/api-types.ts'
import type { Clock } from '../../kube/clock.ts'
import { isKubeError } from '../../kube/errors.ts'
import { customResourceDefinitions } from '../../kube/resources.ts'

/** The answer is remembered for this time, ms. */
export const rememberedMs = 30_000

/**
 * Returns a function that says whether the operator serves Koordinator's kind. Where Koordinator itself is installed, its own controller
 * acts for these jobs: two would evict twice.
 * @throws KubeError if the API server does not say.
 */
export function createKoordinatorCheck(api: Pick<Api, 'get'>, clock: Pick<Clock, 'monotonic'>) {
  let known: { readonly isServed: boolean; readonly at: number } | undefined
  return async (signal: AbortSignal): Promise<boolean> => {
    if (known !== undefined && clock.monotonic() - known.at < rememberedMs) return known.isServed
    const name = `${koordinatorJobs.plural}.${koordinatorJobs.group}`
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
