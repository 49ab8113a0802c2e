import { createCipheriv, createDecipheriv, hkdfSync } from 'node:crypto'
import type { Random } from '../kube/random.ts'
import type { StateStore } from './state-store.ts'

const version = 1
const nonceLength = 12
const tagLength = 16

/**
 * A store in which others can neither read nor forge: values are encrypted and bound to their key (AES-256-GCM). What
 * cannot be opened, because it was written under another key or changed, counts as absent.
 * @param secrets from which keys are derived: values are written under the first and read under any. The same for all replicas,
 * and kept where the store's owner cannot read them.
 */
export function sealed(
  store: StateStore,
  secrets: readonly [Uint8Array, ...(readonly Uint8Array[])],
  random: Random,
): StateStore {
  const keyFrom = (secret: Uint8Array) =>
    Buffer.from(hkdfSync('sha256', secret, '', 'understudy state store', 32))
  const key = keyFrom(secrets[0])
  const keys = secrets.map(keyFrom)
  return {
    ...store,
    async get(name) {
      const box = await store.get(name)
      for (const each of box ? keys : []) {
        const value = box && open(box, each, name)
        if (value !== undefined) return value
      }
      return undefined
    },
    put: (name, value, ttlMs) => store.put(name, seal(value, key, name, random), ttlMs),
  }
}

function seal(value: Uint8Array, key: Buffer, name: string, random: Random): Uint8Array {
  const nonce = random.bytes(nonceLength)
  const cipher = createCipheriv('aes-256-gcm', key, nonce).setAAD(Buffer.from(name))
  const body = [cipher.update(value), cipher.final()]
  return Buffer.concat([Uint8Array.of(version), nonce, cipher.getAuthTag(), ...body])
}

function open(box: Uint8Array, key: Buffer, name: string): Uint8Array | undefined {
  const start = 1 + nonceLength + tagLength
  if (box.length < start || box[0] !== version) return undefined
  const decipher = createDecipheriv('aes-256-gcm', key, box.subarray(1, 1 + nonceLength), {
    authTagLength: tagLength,
  })
    .setAAD(Buffer.from(name))
    .setAuthTag(box.subarray(1 + nonceLength, start))
  try {
    return Buffer.concat([decipher.update(box.subarray(start)), decipher.final()])
  } catch {
    return undefined
  }
}
