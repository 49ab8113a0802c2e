import { expect, it } from 'vitest'
import { fateAtLeave } from './leaving.ts'
import { died, lease, nameOf, pod } from './testing/fake/snapshots.ts'

const fence = (version: number) => ({
  ...{ term: 2, version, voters: version > 0 ? ['API/1', 'b/2'] : [], timeoutMs: 3_000 },
  ...{ isArmed: version > 0, isRevoked: false },
})
const held = (version: number) => lease({ fence: fence(version) })
const fate = (...about: Parameters<typeof fateAtLeave>) => fateAtLeave(...about).fate

it('a primary stays guarded until its Lease names no voters', () => {
  expect(fate('uid-p', [pod('p')], [held(1)])).toBe('Waits')
  expect(fate('uid-p', [pod('p')], [held(0)])).toBe('GoesOn')
  expect(fate('uid-p', [pod('p')], [lease()])).toBe('GoesOn')
})

it('a pod that has lost its slot, has died or is gone holds up nothing, and must not run again', () => {
  const other = lease({ holder: { name: 'h', uid: 'uid-h' }, epoch: 2, fence: fence(1) })
  expect(fate('uid-p', [pod('p')], [other])).toBe('Ends')
  expect(fate('uid-p', [pod('p', { serving: died(nameOf()) })], [held(1)])).toBe('Ends')
  expect(fate('uid-p', [], [held(1)])).toBe('Ends')
})

it('a pod continues if its set keeps no memory any more', () => {
  expect(fate('uid-p', [pod('p')], [])).toBe('GoesOn')
})
