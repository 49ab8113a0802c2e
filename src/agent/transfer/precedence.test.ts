import { expect, test } from 'vitest'
import type { SlotReport } from '../../api/node-report.ts'
import { manifestOf } from '../../checkpoint/testing/generation.ts'
import { lease } from '../testing/fake/snapshots.ts'
import { isLater } from './precedence.ts'

const heir = { name: 'h', uid: 'uid-h', ip: '10.0.0.2' }
const asked = lease({ holders: ['b', 'c'], heir, handover: 'uid-h' })
const last = manifestOf(7, { epoch: 2, final: true })
const said = (over: Partial<SlotReport>): SlotReport => ({
  ...{
    namespace: 'n',
    name: 's-0',
    incarnation: '1',
    set: 's',
    slot: 0,
    role: 'holder',
    generation: 6,
    epoch: 2,
  },
  ...over,
})

test('D7.handed-over: the node of the successor gets the last generation before all others', () => {
  const later = (reader: string, report?: SlotReport) => isLater(reader, asked, last, () => report)
  expect(later('b')).toBe(false)
  expect([later('c'), later('c', said({})), later('c', said({ epoch: 1, generation: 9 }))]).toEqual([
    true,
    true,
    true,
  ])
  // It has it. An agent of an earlier version does not report the epoch.
  const { epoch: _, ...earlier } = said({ generation: 7 })
  expect([later('c', said({ generation: 7 })), later('c', earlier)]).toEqual([false, false])
})

test.each([
  ['no handover is under way', lease({ holders: ['b', 'c'], heir }), last],
  ['another pod is to take the slot', { ...asked, handover: 'uid-x' }, last],
  ['the primary runs', asked, manifestOf(7, { epoch: 2 })],
  ['nothing is saved here', asked, undefined],
  ['nobody else keeps the slot', { ...asked, holders: [] }, last],
] as const)('no node waits for another one where %s', (_, slot, newest) => {
  expect(isLater('c', slot, newest, () => undefined)).toBe(false)
})
