import { expect, test } from 'vitest'
import type { SlotReport } from '../../api/node-report.ts'
import type { SlotLease } from '../../api/slot-lease.ts'
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
  const later = (reader: string, report?: SlotReport) => isLater(reader, asked, last, () => report, false)
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
  expect(isLater('c', slot, newest, () => undefined, false)).toBe(false)
})

test('D16.last-save: the node of the pod that follows a deleted one gets its memory before all others', () => {
  const saved = manifestOf(7, { epoch: 2 })
  const { node } = saved.source
  const later = (reader: string, slot: SlotLease, report?: SlotReport) =>
    isLater(reader, slot, saved, () => report, true)
  const called = lease({ node: 'b', holders: ['c', node], heir: undefined })
  expect([later('b', called), later('c', called), later('c', called, said({ generation: 7 }))]).toEqual([
    ...[false, true, false],
  ])
  // It is restored, and then on stage.
  const source = said({ generation: 7, role: 'source' })
  expect([later('c', called, { ...source, usable: 'Staged' }), later('c', called, source)]).toEqual([
    ...[true, false],
  ])
  // None is called yet: the heir is on the first of its holders.
  const heirs = lease({ node, holders: ['b', 'c'], heir })
  expect([later('b', heirs, said({})), later('c', heirs, said({})), later('c', heirs)]).toEqual([
    false,
    true,
    false,
  ])
  expect(later('c', heirs, said({ generation: 7 }))).toBe(false)
  expect(later('c', { ...heirs, heir: undefined }, said({}))).toBe(false)
  // Unless it was stopped for its successor before it was deleted.
  expect(isLater('c', { ...asked, node }, { ...saved, final: true }, () => undefined, true)).toBe(true)
})
