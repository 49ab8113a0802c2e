import { expect, it } from 'vitest'
import { makeHolder, makeLease } from '../testing/slots.ts'
import { createHandoverTimes } from './handover-times.ts'

const lease = makeLease(makeHolder('p0', 0), { handover: 'uid-h0', handovers: 2 })

it('D7.consent: a process knows the time of the handovers that it has requested itself', () => {
  const requests = createHandoverTimes()
  expect(requests.requestedAt(lease)).toBeUndefined()
  requests.wrote(lease, 5)
  expect(requests.requestedAt({ ...lease, holders: ['n9'] })).toBe(5)
  for (const other of [
    { ...lease, handovers: 3 },
    { ...lease, handover: 'uid-h1' },
    { ...lease, handover: undefined },
    { ...lease, incarnation: 'ffffffff' },
    { ...lease, slot: 1 },
  ])
    expect(requests.requestedAt(other)).toBeUndefined()
})
