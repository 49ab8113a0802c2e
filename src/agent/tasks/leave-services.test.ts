import { expect, it } from 'vitest'
import { createFakeClock } from '../../kube/clock.ts'
import type { PodView } from '../observe/snapshot.ts'
import type { PodCondition } from '../report/conditions.ts'
import { died, nameOf, pod } from '../testing/fake/snapshots.ts'
import { leaveServices } from './leave-services.ts'

const serving = { ...died(nameOf()), heirAnswers: true as const }
const dead = pod('p', { serving })
const task = { type: 'leaveServices', key: '', version: serving.message, pod: dead } as const

async function stand(now: PodView | undefined) {
  const clock = createFakeClock()
  const written: PodCondition[] = []
  const patch = async (_: unknown, condition: PodCondition) => {
    written.push(condition)
    return {}
  }
  const done = leaveServices({ patch, podOf: () => now, clock }, task, new AbortController().signal)
  await clock.advance(1_999)
  expect(written).toEqual([])
  await clock.advance(1)
  await done
  return written
}

it('D7.endpoints: a dead primary leaves its Services after two seconds, and its condition keeps reason, message and record', async () => {
  expect(await stand(dead)).toEqual([{ type: 'backup.example.com/serving', ...died(nameOf()) }])
})

it.each([
  ['is gone', undefined],
  ['has left them', pod('p', { serving: died(nameOf()) })],
  ['has died once more', pod('p', { serving: { ...serving, message: 'another end' } })],
  ['has a new life', pod('p', { serving: { ...died(nameOf()), status: 'True', reason: 'OnStage' } })],
])('a pod that %s keeps what is said of it', async (_, now) => {
  expect(await stand(now)).toEqual([])
})
