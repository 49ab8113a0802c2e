import { expect, it } from 'vitest'
import { labels } from '../api/labels.ts'
import type { Pod } from '../kube/resources.ts'
import { createReadings } from './readings.ts'

const pod = (ready: 'True' | 'False'): Pod => ({
  metadata: {
    ...{ name: 'web-1', namespace: 'default', uid: 'u', resourceVersion: ready },
    labels: { [labels.type]: 'primary' },
  },
  status: { conditions: [{ type: 'Ready', status: ready }] },
})

it('a pod is read once for each version of it', () => {
  const readings = createReadings()
  const [before, after] = [pod('False'), pod('True')]
  expect(readings.viewOf(before)?.ready).toBe(false)
  expect(readings.viewOf(before)).toBe(readings.viewOf(before))
  expect(readings.stageOf(before)).toBe(readings.stageOf(before))
  expect(readings.stageOf(before).selectable).toBe(false)
  expect(readings.viewOf(after)?.ready).toBe(true)
  expect(readings.stageOf(after).selectable).toBe(true)
})
