import type { Api } from '../../kube/api.ts'
import { isKubeError } from '../../kube/errors.ts'
import type { Random } from '../../kube/random.ts'
import { type Secret, secrets } from '../../kube/resources.ts'
import type { WakeKeys } from './token.ts'

export const wakeKeySecret = 'understudy-wake-key'
const keyLength = 32

/**
 * Reads the keys from which the tokens of cold pods are derived from their Secret, and creates it at the first start.
 * Because they are stored, a restarted operator can wake pods that an earlier one created. New pods use `key`. An
 * administrator who rotates the key moves the old one to `previous`, which wakes older pods until it is removed.
 * @throws Error if the Secret has other contents; KubeError.
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
      // Another replica was faster, or our own response was lost: the stored key counts.
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
        ? 'delete it, and the operator creates a new one (and replaces cold backups when they are needed)'
        : 'remove that field, or put the previous key there'
    throw new Error(`Secret ${wakeKeySecret} must hold ${keyLength} bytes under "${name}"; ${cure}`)
  }
  return key
}
