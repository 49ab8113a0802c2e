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

/** What the pod itself holds: the SHA-256 of the token's 64 characters, in hex. It opens nothing. */
export function tokenDigest(token: string): string {
  return createHash('sha256').update(token, 'ascii').digest('hex')
}
