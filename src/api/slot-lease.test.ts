import { expect, it } from 'vitest'
import type { Lease } from '../kube/resources.ts'
import { makeObject } from '../kube/testing/fake-api.ts'
import { parseSlotLease, type SlotLease, slotAnnotations, slotLeaseBody } from './slot-lease.ts'

const lease: SlotLease = {
  namespace: 'default',
  name: 'web-0',
  incarnation: '0123abcd',
  group: 'web',
  holder: { name: 'p', uid: 'u' },
  epoch: 3,
  ip: undefined,
  node: 'a',
  heir: undefined,
  holders: ['b', 'c'],
  kept: ['b'],
  containers: 'app=containerd://1',
  ending: 'u',
  restoreHash: undefined,
  handover: undefined,
  givenUpFor: undefined,
}
const written = (said: SlotLease): Lease => makeObject(slotLeaseBody(said))

it('a Lease says what was written into it', () => {
  expect(parseSlotLease(written(lease))).toEqual(lease)
  expect(parseSlotLease(written({ ...lease, kept: [] }))?.kept).toEqual([])
  const asked = {
    ...lease,
    atLeast: { epoch: 2, generation: 57, takenAt: Date.parse('2026-11-25T12:00:00.250Z') },
    unsaved: true,
  }
  expect(parseSlotLease(written(asked))).toEqual(asked)
  const retained = { ...lease, retainedSince: '2030-01-01T00:00:00.000Z' }
  expect(parseSlotLease(written(retained))).toEqual(retained)
  // A merge patch clears the mark.
  expect(slotLeaseBody(lease).metadata.annotations[slotAnnotations.retainedSince]).toBe('')
})

it('D7.known: a Lease of before it named who keeps something names nobody, which is not the same as nothing', () => {
  const old = written(lease)
  const { annotations = {} } = old.metadata
  const { [slotAnnotations.kept]: _, [slotAnnotations.containers]: __, ...before } = annotations
  const said = parseSlotLease({ ...old, metadata: { ...old.metadata, annotations: before } })
  expect(said).toMatchObject({ kept: undefined, containers: undefined, holders: ['b', 'c'] })
})

it('signers are said as they were written, and where there are none nothing is said of them', () => {
  const signers = [
    { epoch: 4, fingerprint: 'a'.repeat(64) },
    { epoch: 3, fingerprint: undefined },
  ]
  expect(parseSlotLease(written({ ...lease, signers }))).toEqual({ ...lease, signers })
  expect(parseSlotLease(written(lease))).not.toHaveProperty('signers')
})

it('signers that cannot be read are signers that nobody is: not a Lease of before they were written', () => {
  const body = written(lease)
  const annotations = { ...body.metadata.annotations, [slotAnnotations.signers]: '4=everybody,x=,' }
  expect(parseSlotLease({ ...body, metadata: { ...body.metadata, annotations } })?.signers).toEqual([])
})
