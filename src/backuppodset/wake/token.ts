import { createHash, createHmac } from 'node:crypto'

/** The token that opens one pod's gate, 64 hex digits. Derived, never stored: a restarted operator knows it again. */
export const deriveToken = (key: Uint8Array, setUid: string, podName: string): string =>
  createHmac('sha256', key).update(`${setUid}/${podName}`).digest('hex')

/** What the pod holds of its token: enough to recognise it, useless to anybody who reads the pod. */
export const tokenDigest = (token: string): string =>
  createHash('sha256').update(token, 'ascii').digest('hex')
