import { createHash, createHmac } from 'node:crypto'

/**
 * The secret that wakes one pod: HMAC-SHA-256 over `<set UID>/<pod name>` as 64 lower-case hex digits. Derived, not
 * stored: any operator that has the key can wake the pod, also one that did not create it.
 *
 * @param key the operator's wake key, 32 random bytes
 */
export function deriveToken(key: Uint8Array, setUid: string, podName: string): string {
  return createHmac('sha256', key).update(`${setUid}/${podName}`).digest('hex')
}

/** The first is the one that pods are made under; pods that were made under another of them are woken as well. */
export type WakeKeys = readonly [current: Uint8Array, ...before: readonly Uint8Array[]]

/** Tells keys apart without telling what they are: 8 hex digits. */
export const wakeKeyId = (key: Uint8Array): string =>
  createHmac('sha256', key).update('understudy wake key id').digest('hex').slice(0, 8)

/**
 * The token that a gate opens to, found by the digest that it holds: a pod was made under any of the keys.
 * @returns undefined where it is of none of them: of a key that is no more, or of another set.
 */
export const tokenOf = (
  keys: WakeKeys,
  setUid: string,
  podName: string,
  digest: string | undefined,
): string | undefined =>
  keys.map(key => deriveToken(key, setUid, podName)).find(token => tokenDigest(token) === digest)

/** What the pod itself holds: the SHA-256 of the token's 64 characters, in hex. It opens nothing. */
export function tokenDigest(token: string): string {
  return createHash('sha256').update(token, 'ascii').digest('hex')
}
