import type { Api } from '../kube/api.ts'
import { isKubeError } from '../kube/errors.ts'
import type { Random } from '../kube/random.ts'
import { type Secret, secrets } from '../kube/resources.ts'
import type { WakeKeys } from './wake/token.ts'

export const wakeKeySecret = 'understudy-wake-key'
const keyLength = 32

/**
 * The keys from which cold pods' tokens are derived: read from their Secret, made on the first start. Because they are
 * stored, a restarted operator can wake the pods that an earlier one made. `key` is what pods are made under from now on.
 * `previous`, which people write when they exchange the key, wakes those of before until they take it away.
 * @throws Error when the Secret holds something else; KubeError.
 */
export async function loadWakeKeys(
  api: Pick<Api, 'get' | 'create'>,
  namespace: string,
  random: Random,
  signal: AbortSignal,
): Promise<WakeKeys> {
  const ref = { namespace, name: wakeKeySecret }
  for (;;) {
    try {
      return keysIn(await api.get(secrets, ref, { signal }))
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
      return keysIn(await api.create(secrets, body, { namespace, signal }))
    } catch (error) {
      // Another replica was faster, or our own answer was lost: what is stored counts.
      if (!isKubeError(error, 'AlreadyExists') && !(isKubeError(error) && error.ambiguous)) throw error
    }
  }
}

function keysIn({ data = {} }: Secret): WakeKeys {
  const key = keyIn(data, 'key')
  return data['previous'] ? [key, keyIn(data, 'previous')] : [key]
}

function keyIn(data: Readonly<Record<string, string>>, name: 'key' | 'previous'): Uint8Array {
  const key = Buffer.from(data[name] ?? '', 'base64')
  if (key.length !== keyLength) {
    const cure =
      name === 'key'
        ? 'delete it to have a new one made (cold backups are then replaced when they are needed)'
        : 'take that field away, or put the key of before there'
    throw new Error(`Secret ${wakeKeySecret} must hold ${keyLength} bytes under "${name}"; ${cure}`)
  }
  return key
}
