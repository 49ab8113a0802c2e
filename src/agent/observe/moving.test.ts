import { expect, it } from 'vitest'
import { lease, pod, understudy } from '../testing/fake/snapshots.ts'
import { isMoving } from './moving.ts'

const until = 1_000_000
const heldEnd = { forMs: 10_000, until, killedAt: until + 20_000, isWhole: true }
const heir = { name: 'h', uid: understudy('h').uid, ip: undefined, restoreHash: undefined }
const called = { name: 'h', uid: heir.uid }
const made = { ...understudy('h'), madeForSlot: true }

it.each([
  ['a primary is to be stopped for its successor', { slots: [lease({ handover: 'uid-h' })], pods: [] }, true],
  ['a primary that is suspended', { slots: [lease({ handover: lease().holder.uid })], pods: [] }, false],
  [
    'a deleted primary serves on',
    { slots: [lease({ holder: called })], pods: [{ ...pod('h'), heldEnd }] },
    true,
  ],
  ['another pod is deleted', { slots: [lease()], pods: [{ ...pod('other'), heldEnd }] }, false],
  ['the next pod is awaited', { slots: [lease({ heir })], pods: [made] }, true],
  ['the next pod is called', { slots: [lease({ holder: called })], pods: [made] }, true],
  [
    'the next pod runs',
    {
      slots: [lease({ holder: called })],
      pods: [{ ...made, serving: { status: 'True', reason: 'OnStage', message: '', record: {} } }],
    },
    false,
  ],
  [
    'no memory can be restored in the next pod',
    {
      slots: [lease({ holder: called })],
      pods: [{ ...made, understudyState: { status: 'False', reason: 'RestoreFailed', message: '' } }],
    },
    false,
  ],
  ['a hot backup is the heir', { slots: [lease({ heir })], pods: [understudy('h')] }, false],
])('D9.keeper: a memory is on its way or not: %s', (_, snapshot, expected) => {
  expect(isMoving(snapshot, until - 1)).toBe(expected)
})

it('D9.keeper: a pod that stays for longer than its app serves on keeps nothing from the disk', () => {
  const snapshot = { slots: [lease({ holder: called })], pods: [{ ...pod('h'), heldEnd }] }
  expect(isMoving(snapshot, until)).toBe(false)
})
