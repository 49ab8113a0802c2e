import { describe, expect, it } from 'vitest'
import { labels } from '../../api/labels.ts'
import { holdInitContainer, podConditions } from '../../api/pod-contract.ts'
import { createFakeClock } from '../../kube/clock.ts'
import { KubeError } from '../../kube/errors.ts'
import type { Pod } from '../../kube/resources.ts'
import { createStore } from '../../kube/store.ts'
import { openGate } from '../gate/open-gate.ts'
import { makePodObject, type PodCondition } from '../testing/objects.ts'
import { awaitServing } from './await-serving.ts'

const podOf = (conditions: readonly PodCondition[]): Pod =>
  makePodObject('h', {
    metadata: {
      ...{ uid: 'u', creationTimestamp: '2030-01-01T00:00:00Z' },
      labels: { [labels.type]: 'hotbackup' },
    },
    spec: { initContainers: [{ name: holdInitContainer }] },
    status: { podIP: '10.0.0.2', conditions },
  })
const serving = { type: podConditions.serving, status: 'True', reason: 'OnStage' }
const torn = { type: podConditions.understudy, status: 'False', reason: 'RestoreFailed', message: 'torn' }

function stand(cached: Pod, read: () => Promise<Pod | undefined>) {
  const clock = createFakeClock()
  const pods = createStore<Pod>()
  pods.replace([cached], 1n)
  return { clock, pods, read }
}

describe('D7.setback: a promotion fails by the word of the API server only', () => {
  const asked = async (cached: Pod, read: () => Promise<Pod | undefined>) => {
    const { clock, ...world } = stand(cached, read)
    const ref = { namespace: 'default', name: 'h', uid: 'u' }
    const result = awaitServing(
      { ...ref, timeoutMs: 10_000, signal: new AbortController().signal },
      { ...world, clock },
    )
    result.catch(() => undefined)
    await clock.advance(10_100)
    return result
  }
  it.each([
    ['it serves, and our watch is late', podOf([]), podOf([serving]), { type: 'serving' }],
    ['it failed an earlier time, and serves', podOf([torn]), podOf([serving]), { type: 'serving' }],
    [
      'it does not serve either',
      podOf([]),
      podOf([]),
      { type: 'failed', why: 'it did not serve within 10 s' },
    ],
    ['it could not be brought there', podOf([torn]), podOf([torn]), { type: 'failed', why: 'torn' }],
    ['it is gone', podOf([]), undefined, { type: 'failed', why: 'the pod is gone' }],
  ])('%s', async (_, cached, real, result) => {
    expect(await asked(cached, async () => real)).toMatchObject(result)
  })

  it('and not where that one does not say', async () => {
    const silent = asked(podOf([]), async () => {
      throw new KubeError('Timeout', 'no answer')
    })
    await expect(silent).rejects.toMatchObject({ code: 'Timeout' })
  })
})

it('D7.setback: a gate has failed by the word of the API server only: the pod would be deleted', async () => {
  const { clock, ...world } = stand(podOf([]), async () => podOf([]))
  const gone = { ...podOf([]), metadata: { ...podOf([]).metadata, uid: 'another' } }
  world.pods.replace([gone], 2n)
  const result = openGate(
    {
      ...{ ownerUid: 's', to: 'primary', timeoutMs: 1_000, signal: new AbortController().signal },
      pod: { namespace: 'default', name: 'h', uid: 'u' },
    },
    {
      ...world,
      clock,
      wakeKeys: [new Uint8Array(32)],
      wake: async () => ({ type: 'denied', detail: '' }),
    },
  )
  expect(await result).toEqual({ type: 'opened', openedGate: undefined })
})
