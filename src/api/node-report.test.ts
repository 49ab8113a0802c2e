import { expect, it } from 'vitest'
import { forged } from '../../test/support/forged.ts'
import { type NodeReport, parseReport, type SlotReport } from './node-report.ts'

const reportOf = (...slots: readonly object[]): NodeReport =>
  forged({
    metadata: { name: 'a', uid: 'u', resourceVersion: '1' },
    status: { slots, slotCount: slots.length },
  })
const slotsOf = (report: NodeReport): readonly SlotReport[] => parseReport(report).status?.slots ?? []

const before = `{"namespace":"shop","set":"carts","slot":0,"life":"0a1b2c3d","role":"holder","generation":7}`
const read = { namespace: 'shop', name: 'carts-0', incarnation: '0a1b2c3d', role: 'holder', generation: 7 }

it('a report of the version before names the same slots', () => {
  expect(slotsOf(reportOf(JSON.parse(before)))).toEqual([read])
})

it('a report of this version is read by its new fields, with or without the old ones', () => {
  expect(slotsOf(reportOf(read, { ...JSON.parse(before), ...read }))).toEqual([read, read])
})

it('an entry that names no slot, or two, is left out, and the count says that there are more', () => {
  const { name: _, ...nameless } = read
  const two = { ...JSON.parse(before), ...read, name: 'carts-1' }
  const report = parseReport(reportOf(nameless, two, { ...read, name: '../x' }, read))
  expect(report.status).toMatchObject({ slots: [read], slotCount: 4 })
})

it('a report without a status, as a new one, stays as it is', () => {
  const { status: _, ...empty } = reportOf()
  expect(parseReport(empty)).toEqual(empty)
})

it('a status without a list of slots says nothing, and in particular not that the node has none', () => {
  const { metadata } = reportOf()
  const report: NodeReport = forged({ metadata, status: { ready: true, slotsKnown: true } })
  expect(parseReport(report)).toEqual({ metadata })
})
