import { describe, expect, it } from 'vitest'
import { labels } from '../api/labels.ts'
import { viewOf } from './pod/view.ts'
import { refusedStatus, statusOf } from './status.ts'
import { makePod, makeSet } from './testing/snapshots.ts'

it('a refused set makes no progress, whatever it did before', () => {
  const progressing = {
    type: 'Progressing',
    status: 'True',
    reason: 'Converging',
    message: '',
    lastTransitionTime: '2026-01-01T00:00:00Z',
    observedGeneration: 1,
  } as const
  const refusal = { code: 'ImageMissing', message: 'give every container an image' }
  const { conditions } = refusedStatus(2, { conditions: [progressing] }, refusal, 0)
  expect(conditions?.map(({ type, status, reason }) => [type, status, reason])).toEqual([
    ['Progressing', 'False', 'ImageMissing'],
    ['Ready', 'False', 'ImageMissing'],
    ['Degraded', 'True', 'ImageMissing'],
  ])
})

it('R29: a template that does not start is told with the words of the kubelet, and after ten minutes no progress', () => {
  const pod = viewOf(
    {
      metadata: {
        ...{ name: 'a', namespace: 'default', uid: 'a', resourceVersion: '1' },
        ...{ creationTimestamp: '1970-01-01T00:00:00Z', labels: { [labels.type]: 'primary' } },
      },
      status: {
        containerStatuses: [
          {
            ...{ name: 'app', image: '', imageID: '', ready: false, restartCount: 0 },
            state: { waiting: { reason: 'ImagePullBackOff', message: 'Back-off pulling image "nothing"' } },
          },
        ],
      },
    },
    undefined,
  )
  const at = (second: number) =>
    statusOf(makeSet({ replicas: 1, hotBackups: 0, coldBackups: 0 }), undefined, {
      ...{ pods: pod ? [pod] : [], templateHash: 'now', failure: undefined, now: second * 1000 },
      ...{ lastTransition: undefined, lastFailover: undefined },
    }).conditions?.filter(({ type }) => type === 'Ready' || type === 'Progressing')
  expect(at(10)).toMatchObject([
    { status: 'False', message: expect.stringContaining('a: ImagePullBackOff: Back-off pulling') },
    { status: 'True', reason: 'Converging' },
  ])
  expect(at(600)?.[1]).toMatchObject({ status: 'False', reason: 'ProgressDeadlineExceeded' })
})

describe('a slot that changes hands', () => {
  const set = makeSet({ replicas: 2, hotBackups: 0, coldBackups: 0 })
  const status = (successorIsReady: boolean, loserIsReady: boolean) =>
    statusOf(set, undefined, {
      pods: [
        makePod('a', 'primary', { slot: 0, epoch: 1, ready: loserIsReady }),
        makePod('b', 'primary', { slot: 1, epoch: 1 }),
        makePod('c', 'primary', { slot: 0, epoch: 2, ready: successorIsReady }),
      ],
      ...{ templateHash: 'now', failure: undefined, now: 0 },
      ...{ lastTransition: undefined, lastFailover: undefined },
    })

  it('is one replica, named by its successor, and ready as long as one of the two is', () => {
    expect(status(true, true)).toMatchObject({
      ...{ replicas: 2, readyReplicas: 2, primaryPodNames: ['b', 'c'] },
      summary: { replicas: '2/2' },
      slots: [
        { slot: 0, pod: 'c' },
        { slot: 1, pod: 'b' },
      ],
    })
    expect(status(false, true).readyReplicas).toBe(2)
    expect(status(false, false)).toMatchObject({ replicas: 2, readyReplicas: 1 })
  })

  it('is not in place yet', () => {
    const { conditions = [] } = status(true, true)
    expect(conditions.filter(({ status }) => status === 'True').map(({ type }) => type)).toEqual([
      'Progressing',
    ])
  })

  it('two primaries of one epoch are two: one of them gets another slot', () => {
    const pods = ['a', 'b'].map(name => makePod(name, 'primary', { slot: 0, epoch: 1 }))
    const facts = { templateHash: 'now', failure: undefined, now: 0, lastTransition: undefined }
    expect(statusOf(set, undefined, { ...facts, pods, lastFailover: undefined }).replicas).toBe(2)
  })
})
