import { expect, it } from 'vitest'
import { lease, peer, snapshot, usableAt } from '../testing/fake/snapshots.ts'
import { isKeptElsewhere } from './elsewhere.ts'

it('D7.kept: a generation is elsewhere only if it is of this epoch', () => {
  const slot = lease({ epoch: 2 })
  const with9 = (epoch: number) => {
    const [entry] = usableAt('b', slot).slots
    const slots = entry === undefined ? [] : [{ ...entry, epoch, generation: 9 }]
    return snapshot({ reports: new Map([['b', peer('b', { slots })]]) })
  }
  expect(isKeptElsewhere(with9(2), slot, 8)).toBe(true)
  expect(isKeptElsewhere(with9(2), slot, 10)).toBe(false)
  expect(isKeptElsewhere(with9(1), slot, 8)).toBe(false)
})
