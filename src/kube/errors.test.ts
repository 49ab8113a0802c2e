import { expect, test } from 'vitest'
import { errorFromStatus, hasCause, isKubeError, KubeError } from './errors.ts'

test('the server asks for a pause in the body, the header wins', () => {
  const body = { reason: 'TooManyRequests', message: 'later', details: { retryAfterSeconds: 3 } }
  expect(errorFromStatus(429, body, { what: 'get pods' }).retryAfterMs).toBe(3_000)
  expect(errorFromStatus(429, body, { what: 'get pods', retryAfterMs: 500 }).retryAfterMs).toBe(500)
  expect(errorFromStatus(429, {}, { what: 'get pods' })).toMatchObject({
    retryAfterMs: undefined,
    message: 'get pods: HTTP 429',
  })
})

test('the reason is finer than the status', () => {
  // A server timeout comes as 500 or 504, an expired version as 410 or as an ERROR event.
  expect(errorFromStatus(500, { reason: 'Timeout' }, { what: 'x' }).code).toBe('Timeout')
  expect(errorFromStatus(410, { reason: 'Expired' }, { what: 'x' }).code).toBe('Gone')
  expect(errorFromStatus(409, { reason: 'AlreadyExists' }, { what: 'x' }).code).toBe('AlreadyExists')
})

test('is recognised by its code, whatever else is thrown', () => {
  const error = new KubeError('Conflict', 'x')
  expect(isKubeError(error)).toBe(true)
  expect(isKubeError(error, 'NotFound', 'Conflict')).toBe(true)
  expect(isKubeError(error, 'NotFound')).toBe(false)
  for (const other of [new Error('x'), 'Conflict', undefined, { code: 'Conflict' }]) {
    expect(isKubeError(other, 'Conflict')).toBe(false)
    expect(hasCause(other, 'x')).toBe(false)
  }
})
