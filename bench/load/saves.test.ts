import { expect, test, vi } from 'vitest'
import type { Totals } from '../checkpoint/agent-metrics.ts'
import { type Save, watchSaves } from './saves.ts'

const totals = (count: number, frozen: number): Totals => ({
  ...{ count, frozen, criuFrozen: frozen / 2, pipeline: frozen * 10, size: 0, shipped: 0 },
})

test('each checkpoint is noted by what it added, and those of which several came at once are not', async () => {
  const answers = [totals(1, 1), totals(1, 1), totals(2, 1.5), totals(4, 9), totals(5, 9.25), totals(6, 9.5)]
  const seen: Save[] = []
  const read = async () => answers.shift() ?? totals(6, 9.5)
  const saves = watchSaves({ read }, save => seen.push(save))
  await vi.waitFor(() => expect(seen).toHaveLength(3))
  await saves.stop()
  expect(seen.map(({ frozen, pipeline }) => [frozen, pipeline])).toEqual([
    [0.5, 5],
    [0.25, 2.5],
    [0.25, 2.5],
  ])
  // After a skip the gap to the previous checkpoint is unknown.
  expect(seen.map(({ gap }) => gap !== undefined)).toEqual([false, false, true])
})

test('what cannot be read is told at the end', async () => {
  const read = async (): Promise<Totals> => {
    throw new Error('gone')
  }
  const saves = watchSaves({ read }, () => undefined)
  await expect(saves.stop()).rejects.toThrow('gone')
})
