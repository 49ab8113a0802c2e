import { expect, it } from 'vitest'
import type { SlotReport } from '../../api/node-report.ts'
import { type KeptFacts, keptCheck } from './kept-check.ts'

const slot = (generation: number): SlotReport => ({
  ...{ namespace: 'default', name: 'web-0', incarnation: '0123abcd' },
  ...{ role: 'holder', generation },
})
const well = { name: 'canary', ok: true, message: 'restored' }
const failing = { name: 'canary', ok: false, message: 'not restored' }
const check = (over: Partial<KeptFacts>) =>
  keptCheck(() => ({ slots: [slot(3)], before: undefined, checks: [well], told: true, ...over }))()

it('D7.roll: an agent is ready when what its node keeps is known, was told, and can be used again', () => {
  expect(check({})).toBeUndefined()
  expect(check({ told: false })).toMatch(/not reported its copies yet/)
  expect(check({ checks: [well, failing] })).toMatch(/canary: not restored/)
  expect(check({ slots: undefined, before: [slot(3)] })).toMatch(/does not know its copies yet/)
})

it('D7.roll: a node that keeps nothing keeps nobody waiting, whatever its checks say', () => {
  expect(check({ slots: [slot(0)], checks: [failing] })).toBeUndefined()
  expect(check({ slots: undefined, before: [slot(0)], checks: [failing] })).toBeUndefined()
  expect(check({ slots: undefined, before: undefined, checks: [failing] })).toBeUndefined()
})
