import { expect, it } from 'vitest'
import type { TaskOf } from '../decide/task.ts'
import { lease, pod, policy } from '../testing/fake/snapshots.ts'
import { createHandoverPauses } from './handover-pauses.ts'

it('a primary that stood still in vain does not do so again until its share of the time allows it', () => {
  let now = 1_000
  const pauses = createHandoverPauses({ monotonic: () => now })
  const [slot, primary] = [lease(), pod('p')]
  const task: TaskOf<'handOver'> = {
    ...{ type: 'handOver', key: 'handOver/uid-p', version: '1', memoryOf: 'uid-p' },
    ...{ lease: slot, pod: primary, policy: policy({ maxFreezePercent: 2 }) },
  }
  expect(pauses.isOn(slot, [primary])).toBe(false)
  pauses.begin(task, 13_000)
  now += 649_999
  expect(pauses.isOn(slot, [primary])).toBe(true)
  // A new request takes effect at once.
  expect(pauses.isOn(slot, [{ ...primary, handoverRequest: 'please' }])).toBe(false)
  expect(pauses.isOn(lease({ name: 'web-1' }), [primary])).toBe(false)
  now += 1
  expect(pauses.isOn(slot, [primary])).toBe(false)
})
