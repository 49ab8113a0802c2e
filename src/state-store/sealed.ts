import { createCipheriv, createDecipheriv, hkdfSync } from 'node:crypto'
import type { Random } from '../kube/random.ts'
import type { StateStore } from './state-store.ts'

const version = 1
const nonceLength = 12
const tagLength = 16

/**
 * A store whose values other clients can neither read nor forge: they are encrypted and bound to their key
 * (AES-256-GCM). A value that cannot be opened, because it was modified or written with another secret, counts as
 * absent.
 * @param secrets from which encryption keys are derived: values are written with the first and read with any. All
 *   replicas have the same ones, and the owner of the store must not be able to read them.
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
