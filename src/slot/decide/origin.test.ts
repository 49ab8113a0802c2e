import { describe, expect, it } from 'vitest'
import type { SlotLease } from '../../api/slot-lease.ts'
import { type Origin, originFault } from './origin.ts'

const slot = { namespace: 'shop', name: 'web-0', incarnation: '0a1b2c3d' }
const lease: SlotLease = {
  ...slot,
  group: 'web',
  holder: { name: 'p', uid: 'uid-p' },
  epoch: 3,
  node: 'n1',
  ip: undefined,
  heir: undefined,
  holders: ['n2'],
}
const origin: Origin = { slot, epoch: 3, source: { podUid: 'uid-p', node: 'n1' }, signer: undefined }

describe('D10.origin: memory comes from the pod and the node that the Lease names', () => {
  it.each<[string, Origin, SlotLease | undefined, RegExp | undefined]>([
    ['the primary', origin, lease, undefined],
    [
      'who held the slot before',
      { ...origin, epoch: 2, source: { podUid: 'uid-o', node: 'n9' } },
      lease,
      undefined,
    ],
    ['no Lease', origin, undefined, /no Lease/],
    ['another namespace', { ...origin, slot: { ...slot, namespace: 'other' } }, lease, /no Lease/],
    ['another slot', { ...origin, slot: { ...slot, name: 'web-1' } }, lease, /no Lease/],
    ['another incarnation', { ...origin, slot: { ...slot, incarnation: 'ffffffff' } }, lease, /no Lease/],
    ['an epoch to come', { ...origin, epoch: 4 }, lease, /epoch 4, but the Lease is at 3/],
    ['an epoch that no other would ever follow', { ...origin, epoch: 1e14 }, lease, /epoch/],
    ['another pod', { ...origin, source: { podUid: 'uid-x', node: 'n1' } }, lease, /uid-x/],
    ['another node', { ...origin, source: { podUid: 'uid-p', node: 'n2' } }, lease, /node n2/],
    ['a slot whose node is not known', origin, { ...lease, node: undefined }, /names none/],
  ])('%s', (_, from, of, fault) => {
    if (fault === undefined) expect(originFault(from, of)).toBeUndefined()
    else expect(originFault(from, of)).toMatch(fault)
  })
})
