import { AgentError } from '../../api/agent-errors.ts'
import { generationsKey } from '../../api/generations-key.ts'
import type { Api } from '../../kube/api.ts'
import type { Clock } from '../../kube/clock.ts'
import { isKubeError } from '../../kube/errors.ts'
import { secrets } from '../../kube/resources.ts'

/** Cache time: an administrator may delete the Secret to have a new key made. */
const freshMs = 300_000

/**
 * Reads the agents' half of all keys from its Secret, and caches it for some minutes. Uses the cached half for longer
 * while the API server cannot be reached.
 * @returns a function that throws AgentError KeyMissing, KubeError or the signal's reason.
 */
export function createAgentsHalf(
  api: Pick<Api, 'get'>,
  namespace: string,
  clock: Clock,
): (signal: AbortSignal) => Promise<Uint8Array> {
  let known: { readonly half: Uint8Array; readonly at: number } | undefined
  return async signal => {
    if (known !== undefined && clock.monotonic() - known.at < freshMs) return known.half
    const name = generationsKey.secret
    try {
      const secret = await api.get(secrets, { namespace, name }, { signal })
      const half = Buffer.from(secret.data?.[generationsKey.field] ?? '', 'base64')
      if (half.length !== generationsKey.length)
        throw new AgentError(
          'KeyMissing',
          `Secret ${namespace}/${name} does not hold ${generationsKey.length} bytes`,
        )
      known = { half, at: clock.monotonic() }
      return half
    } catch (error) {
      if (isKubeError(error, 'NotFound', 'Forbidden'))
        throw new AgentError('KeyMissing', `Secret ${namespace}/${name}: ${error.code}`, error)
      if (known === undefined || signal.aborted) throw error
      return known.half
    }
  }
}
