import { createHash, createHmac } from 'node:crypto'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { deriveToken, tokenDigest } from './token.ts'

const key = Buffer.from('000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f', 'hex')
const uid = '7d7c1d9e-4b4f-4a0f-9a55-6f1f0c1b2a3d'

test('D7.wake-token: the token is the HMAC over the set and the pod, in lower-case hex', () => {
  expect(deriveToken(key, uid, 'bps-sample-3f583358bca8')).toBe(
    createHmac('sha256', key).update(`${uid}/bps-sample-3f583358bca8`).digest('hex'),
  )
})

test('the same inputs give the same token in every release', () => {
  // The expected value is fixed: a later release must be able to wake pods that an earlier one created.
  const token = deriveToken(key, uid, 'bps-sample-3f583358bca8')
  expect(token).toBe('3f9b845e99d25a72f6a889b78cadf357e6fd7e2f0571c5984a8dd0c83b1dbee9')
  expect(tokenDigest(token)).toBe('525bd1cc329c59e481663201cd98d10b97dd23c2867e54acf8d4b81b966a4e86')
})

test('another key, set or pod gives another token', () => {
  const name = fc.stringMatching(/^[a-z0-9-]{1,40}$/)
  fc.assert(
    fc.property(
      fc.uint8Array({ minLength: 32, maxLength: 32 }),
      fc.uuid(),
      name,
      fc.uuid(),
      name,
      (k, u, n, u2, n2) => {
        fc.pre(u !== u2 || n !== n2)
        const token = deriveToken(k, u, n)
        expect(token).toMatch(/^[0-9a-f]{64}$/)
        expect(deriveToken(k, u2, n2)).not.toBe(token)
        expect(
          deriveToken(
            Uint8Array.from(k, byte => byte ^ 1),
            u,
            n,
          ),
        ).not.toBe(token)
      },
    ),
  )
})

test('the digest is over the characters of the token, and is no token itself', () => {
  const token = deriveToken(key, uid, 'a')
  expect(tokenDigest(token)).toBe(createHash('sha256').update(token).digest('hex'))
  expect(tokenDigest(tokenDigest(token))).not.toBe(tokenDigest(token))
})
