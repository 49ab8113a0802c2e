import { expect, it } from 'vitest'
import { createFakeClock } from '../../kube/clock.ts'
import type { PodCondition } from '../report/conditions.ts'
import { died, nameOf, pod } from '../testing/fake/snapshots.ts'
import { leaveServices } from './leave-services.ts'

it('D7.endpoints: a dead primary is in its Services for two seconds at most, and is told dead by the same words', async () => {
  const clock = createFakeClock()
  const written: PodCondition[] = []
  const patch = async (_: unknown, condition: PodCondition) => written.push(condition) > 0
  const serving = died(nameOf())
  const dead = pod('p', { serving })
  const task = { type: 'leaveServices', key: 'leaveServices/uid-p', version: '', pod: dead } as const
  const done = leaveServices({ patch, clock }, task, new AbortController().signal)
  await clock.advance(1_999)
  expect(written).toEqual([])
  await clock.advance(1)
  await done
  expect(written).toEqual([{ type: 'backup.example.com/serving', ...serving }])
})
