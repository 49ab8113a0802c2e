import { expect, it } from 'vitest'
import type { TaskOf } from '../decide/task.ts'
import { lease, pod, policy } from '../testing/fake/snapshots.ts'
import { createHandoverPauses } from './handover-pauses.ts'

const task: TaskOf<'handOver'> = {
  ...{ type: 'handOver', key: 'handOver/uid-p', version: '1', memoryOf: 'uid-p' },
  ...{ lease: lease(), pod: pod('p'), policy: policy({ maxFreezePercent: 2 }) },
}

it('a primary is not stopped again for a request whose time is over, however long the Lease names it', () => {
  let now = 1_000
  const pauses = createHandoverPauses({ monotonic: () => now })
  const slot = lease({ handover: 'uid-h', handovers: 7 })
  const primary = pod('p')
  // It failed soon, so it may still succeed.
  pauses.begin({ ...task, lease: slot }, 100, 13_000)
  now += 10_000
  expect(pauses.isOn(slot, [primary])).toBe(false)
  pauses.begin({ ...task, lease: slot }, 2_900, 13_000)
  now += 1_000_000
  expect(pauses.isOn(slot, [primary])).toBe(true)
  expect(pauses.isOn(slot, [{ ...primary, handoverRequest: 'please' }])).toBe(true)
  expect(pauses.isOn(lease({ handover: 'uid-h', handovers: 8 }), [primary])).toBe(false)
  // Or no operator could ask again.
  expect(pauses.isOn(lease({ handovers: 7 }), [primary])).toBe(false)
})

it('a primary that stood still in vain does not do so again until its share of the time allows it', () => {
  let now = 1_000
  const pauses = createHandoverPauses({ monotonic: () => now })
  const [slot, primary] = [lease(), pod('p')]
  expect(pauses.isOn(slot, [primary])).toBe(false)
  pauses.begin(task, 13_000, 13_000)
  now += 649_999
  expect(pauses.isOn(slot, [primary])).toBe(true)
  // A new request takes effect at once.
  expect(pauses.isOn(slot, [{ ...primary, handoverRequest: 'please' }])).toBe(false)
  expect(pauses.isOn(lease({ name: 'web-1' }), [primary])).toBe(false)
  now += 1
  expect(pauses.isOn(slot, [primary])).toBe(false)
})
