import { expect, it } from 'vitest'
import { settlesMs } from '../decide/arbitrate.ts'
import { createRequests } from './requests.ts'

it('a request without an answer counts until the caches must show what it has done, an accepted one as long as the job is there', () => {
  let now = 5
  const requests = createRequests({ monotonic: () => now })
  expect([requests.of('a'), requests.sinceMs('a')]).toEqual(['none', Number.POSITIVE_INFINITY])
  requests.note('a', 'unanswered')
  now += 100
  expect([requests.of('a'), requests.sinceMs('a')]).toEqual(['unanswered', 100])
  now += settlesMs
  expect(requests.of('a')).toBe('none')
  requests.note('a', 'accepted')
  now += settlesMs
  requests.keep(new Set(['a', 'b']))
  expect(requests.of('a')).toBe('accepted')
  requests.keep(new Set(['b']))
  expect(requests.of('a')).toBe('none')
})
