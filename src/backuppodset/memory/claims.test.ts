import { expect, it } from 'vitest'
import { type Claim, claimCaveats, claimInTheWay, claimsOf } from './claims.ts'

const volume = (claimName: string, readOnly?: boolean) => ({
  name: claimName,
  persistentVolumeClaim: { claimName, ...(readOnly === undefined ? {} : { readOnly }) },
})
const claim = (name: string, state: Claim['state'], readOnly = false): Claim => ({ name, readOnly, state })
const there = (...accessModes: string[]) => ({ type: 'there', accessModes }) as const
const unread = { type: 'unread', why: 'Forbidden' } as const

it('claims of a template: each once, read-only where every volume of it is', () => {
  const volumes = [
    volume('a'),
    volume('b', true),
    { ...volume('b', true), name: 'again' },
    { ...volume('c', true) },
    { ...volume('c'), name: 'writable' },
    { name: 'scratch', emptyDir: {} },
  ]
  expect(claimsOf({ spec: { containers: [], volumes } })).toEqual([
    { name: 'a', readOnly: false },
    { name: 'b', readOnly: true },
    { name: 'c', readOnly: false },
  ])
  expect(claimsOf({ spec: { containers: [] } })).toEqual([])
})

it('a claim that one node or pod has at a time is in the way, and one of several modes is shared if one of them is', () => {
  for (const mode of ['ReadWriteOnce', 'ReadWriteOncePod'])
    expect(claimInTheWay([claim('data', there(mode))], true)).toMatchObject({
      reason: 'ClaimNotShared',
      message: expect.stringMatching(new RegExp(`^claim data is ${mode}.*use a ReadWriteMany claim`)),
    })
  for (const modes of [['ReadWriteMany'], ['ReadOnlyMany'], ['ReadWriteOnce', 'ReadWriteMany']])
    expect(claimInTheWay([claim('data', there(...modes))], false)).toBeUndefined()
  const both = [claim('gone', { type: 'missing' }), claim('alone', there('ReadWriteOnce'))]
  expect(claimInTheWay(both, false)?.reason).toBe('ClaimNotShared')
})

it('one that is missing is awaited; one that cannot be read ends no memory that there is', () => {
  expect(claimInTheWay([claim('data', { type: 'missing' })], true)?.reason).toBe('ClaimMissing')
  expect(claimInTheWay([claim('data', unread)], true)).toBeUndefined()
  expect(claimInTheWay([claim('data', unread)], false)).toMatchObject({
    reason: 'ClaimUnread',
    message: expect.stringContaining('Forbidden'),
  })
})

it('D7.kept: a claim that only pods of a changed template will have is in nobody’s way, and is told', () => {
  const next = [{ ...claim('data', { type: 'missing' }), unused: true }]
  expect(claimInTheWay(next, true)).toBeUndefined()
  expect(claimCaveats(next)).toEqual([
    {
      reason: 'ClaimMissing',
      message: expect.stringMatching(/^in pods of the current template: claim data/),
    },
  ])
})

it('what the app can write on is ahead of its memory', () => {
  const claims = [
    claim('shared', there('ReadWriteMany')),
    claim('watched', there('ReadWriteMany'), true),
    claim('alone', there('ReadWriteOnce')),
    claim('gone', { type: 'missing' }),
  ]
  expect(claimCaveats(claims)).toEqual([
    { reason: 'DiskAheadOfMemory', message: expect.stringContaining('claim shared ') },
  ])
})
