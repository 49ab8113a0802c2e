import type { Api } from '../kube/api.ts'
import { isKubeError } from '../kube/errors.ts'
import type { Random } from '../kube/random.ts'
import { type Secret, secrets } from '../kube/resources.ts'

export const wakeKeySecret = 'understudy-wake-key'
const keyLength = 32

/**
 * The key from which every cold pod's token is derived: read from its Secret, made on the first start. Because it is
 * stored, a restarted operator can wake the pods that an earlier one made.
 * @throws Error when the Secret holds something else; KubeError.
 */
export async function loadWakeKey(
  api: Pick<Api, 'get' | 'create'>,
  namespace: string,
  random: Random,
  signal: AbortSignal,
): Promise<Uint8Array> {
  const ref = { namespace, name: wakeKeySecret }
  for (;;) {
    try {
      return keyIn(await api.get(secrets, ref, { signal }))
    } catch (error) {
      if (!isKubeError(error, 'NotFound')) throw error
    }
    const body = {
      apiVersion: 'v1',
      kind: 'Secret',
      metadata: ref,
      type: 'Opaque',
      data: { key: Buffer.from(random.bytes(keyLength)).toString('base64') },
    }
    try {
      return keyIn(await api.create(secrets, body, { namespace, signal }))
    } catch (error) {
      // Another replica was faster, or our own answer was lost: what is stored counts.
      if (!isKubeError(error, 'AlreadyExists') && !(isKubeError(error) && error.ambiguous)) throw error
    }
  }
}

function keyIn(secret: Secret): Uint8Array {
  const key = Buffer.from(secret.data?.['key'] ?? '', 'base64')
  if (key.length !== keyLength)
    throw new Error(
      `Secret ${wakeKeySecret} must hold ${keyLength} bytes under "key"; delete it to have a new one made (cold backups are then replaced when they are needed)`,
    )
  return key
}
