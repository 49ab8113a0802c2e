import { expect, it } from 'vitest'
import { lease, peer, policy, snapshot, usableAt } from '../testing/fake/snapshots.ts'
import { isKeptElsewhere, standbyGeneration } from './elsewhere.ts'

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

it('D16.last-save: a pod stands by once memory that is to be frozen is, or cannot be', () => {
  const now = lease({ holders: ['b'] })
  const standby = (over: object, mode: 'Frozen' | 'Staged' = 'Frozen') => {
    const [entry] = usableAt('b', now).slots
    const slots = entry === undefined ? [] : [{ ...entry, generation: 9, ...over }]
    const slot = { ...now, policy: policy({ mode }) }
    const seen = snapshot({ slots: [slot], reports: new Map([['b', peer('b', { slots })]]) })
    // The Lease of the task may be from before that node became a holder.
    return standbyGeneration(seen, { ...slot, holders: ['a'] })
  }
  expect(standby({ usable: 'Frozen' })).toBe(9)
  expect(standby({ usable: 'Staged' }, 'Staged')).toBe(9)
  expect(standby({ usable: 'Staged', reason: 'UnderstudyTooSmall' })).toBe(9)
  for (const usable of ['Staged', 'Cold', undefined]) expect(standby({ usable })).toBeUndefined()
  expect(standby({ usable: 'Cold', reason: 'NoUnderstudy' })).toBeUndefined()
})
