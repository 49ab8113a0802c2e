import { expect, it } from 'vitest'
import type { SlotLease } from '../../api/slot-lease.ts'
import { lease as leaseOf } from '../testing/fake/snapshots.ts'
import { createStrangers } from './strangers.ts'

it('D8.strangers: knows whose heir a pod was, also when another pod is their heir by now', () => {
  const strangers = createStrangers()
  const lease = (name: string, heir: string, ip?: string): SlotLease =>
    leaseOf({ name, heir: { name: heir, uid: heir, ip: undefined }, ...(ip !== undefined && { ip }) })
  const note = (...slots: SlotLease[]) => strangers.note(slots, new Set(['h', 'other']), ({ ip }) => ip)
  note(lease('web-0', 'h', '10.0.0.1'), lease('web-1', 'h', '10.0.0.2'), lease('web-2', 'h'))
  expect(strangers.of('h', lease('web-1', 'h'))).toEqual(['10.0.0.1'])
  note(lease('web-0', 'other', '10.0.0.1'), lease('web-1', 'gone', '10.0.0.2'))
  expect(strangers.of('h', lease('web-1', 'h'))).toEqual(['10.0.0.1'])
  expect(strangers.of('h', lease('web-9', 'h'))).toEqual(['10.0.0.1', '10.0.0.2'])
  expect(strangers.of('other', lease('web-9', 'h'))).toEqual(['10.0.0.1'])
  for (let i = 0; i < 100; i += 1) note(lease('web-0', 'h', `10.0.1.${i}`))
  const all = strangers.of('h', lease('web-9', 'h'))
  expect([all.length, all.at(-1)]).toEqual([64, '10.0.1.99'])
  strangers.note([], new Set(), ({ ip }) => ip)
  expect(strangers.of('h', lease('web-9', 'h'))).toEqual([])
})
