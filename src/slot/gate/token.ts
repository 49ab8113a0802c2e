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

/** New pods use the first key; the others wake pods that were created with them. */
export type WakeKeys = readonly [current: Uint8Array, ...before: readonly Uint8Array[]]

/** Identifies a key without revealing it: 8 hex digits. */
export const wakeKeyId = (key: Uint8Array): string =>
  createHmac('sha256', key).update('understudy wake key id').digest('hex').slice(0, 8)

/**
 * Finds the token that opens a gate by the gate's digest: its pod may have been created with any of the keys.
 * @returns undefined if no key matches: the key was removed, or the pod is of another set.
 */
export const tokenOf = (
  keys: WakeKeys,
  setUid: string,
  podName: string,
  digest: string | undefined,
): string | undefined =>
  keys.map(key => deriveToken(key, setUid, podName)).find(token => tokenDigest(token) === digest)

/** The digest that the pod itself contains: SHA-256 of the token's 64 characters, in hex. It does not open the gate. */
export function tokenDigest(token: string): string {
  return createHash('sha256').update(token, 'ascii').digest('hex')
}
