import { expect, it } from 'vitest'
import { slotName } from '../../checkpoint/manifest.ts'
import { lease, pod, policy, understudy } from '../testing/fake/snapshots.ts'
import { movingSlots } from './moving.ts'

const until = 1_000_000
const heldEnd = { forMs: 10_000, until, killedAt: until + 20_000, isWhole: true }
const heir = { name: 'h', uid: understudy('h').uid, ip: undefined, restoreHash: undefined }
const called = { name: 'h', uid: heir.uid }
const made = { ...understudy('h'), madeForSlot: true }
const told = (reason: string) => ({ status: 'False', reason, message: '' })
const slots = [lease({ holder: called })]

it.each([
  ['its primary is to be stopped here', [lease({ handover: 'uid-h', node: 'b', holders: [] })], [], true],
  ['a copy of it is here meanwhile', [lease({ handover: 'uid-h', node: 'a', holders: ['b'] })], [], true],
  ['that is elsewhere', [lease({ handover: 'uid-h', node: 'a', holders: ['c'] })], [], false],
  [
    'its replacements pause',
    [lease({ handover: 'uid-h', node: 'b', policy: policy({ paused: true }) })],
    [],
    false,
  ],
  ['its primary is suspended', [lease({ handover: lease().holder.uid, node: 'b' })], [], false],
  ['its deleted primary serves on', slots, [{ ...pod('h'), heldEnd }], true],
  [
    'its deleted primary stays for longer',
    slots,
    [{ ...pod('h'), heldEnd: { ...heldEnd, until: 1 } }],
    false,
  ],
  ['another pod is deleted', [lease()], [{ ...pod('other'), heldEnd }], false],
  ['its next pod is awaited', [lease({ heir })], [made], true],
  ['its next pod is called', slots, [made], true],
  ['its next pod ends', slots, [{ ...made, terminating: true }], false],
  ['its next pod waits', slots, [{ ...made, serving: { ...told('OffStage'), record: {} } }], true],
  ['its next pod resumes', slots, [{ ...made, serving: { ...told('Resuming'), record: {} } }], true],
  ['its next pod runs', slots, [{ ...made, serving: { ...told('OnStage'), record: {} } }], false],
  [
    'its next pod does not answer any more',
    slots,
    [{ ...made, serving: { ...told('NotAnswering'), record: {} } }],
    false,
  ],
  ['its next pod has died', slots, [{ ...made, serving: { ...told('Died'), record: {} } }], false],
  [
    'its next pod cannot be given memory',
    slots,
    [{ ...made, understudyState: told('RestoreFailed') }],
    false,
  ],
  ['a hot backup is its heir', [lease({ heir })], [understudy('h')], false],
])('D9.keeper: a slot moves or not: %s', (_, slots, pods, expected) => {
  const names = movingSlots({ node: 'b', slots, pods }, until - 1)
  expect([...names]).toEqual(expected ? [slotName(lease())] : [])
})
