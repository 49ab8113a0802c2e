import { expect, it } from 'vitest'
import type { BackupPodSetStatus } from '../api/backuppodset.ts'
import { holdInitContainer, memoryAnnotation, memoryKept, podConditions } from '../api/pod-contract.ts'
import { createFakeClock } from '../kube/clock.ts'
import type { Pod } from '../kube/resources.ts'
import { createStore } from '../kube/store.ts'
import { observe } from './observe.ts'
import { podIndexes } from './pod-indexes.ts'
import { makeRecord } from './testing/record.ts'
import { makeSet } from './testing/snapshots.ts'

const makeDeps = (clock = createFakeClock()) => ({
  pods: createStore<Pod>({ indexes: podIndexes }),
  ...{ clock, record: makeRecord(clock) },
  isDeleted: () => false,
  ...{ wakening: () => undefined, setbackOf: () => undefined },
})

it('R31: a set that was paused or refused when it was made is new until it has pods', () => {
  const isNew = (status: BackupPodSetStatus) => observe(makeSet(), status, makeDeps()).snapshot.isNew
  const times = { lastTransitionTime: '2026-01-01T00:00:00Z', observedGeneration: 1, message: '' }
  const paused = { ...times, type: 'Paused', status: 'True', reason: 'Paused' } as const
  const none = { observedGeneration: 1, replicas: 0, hotbackups: 0, coldbackups: 0 }
  expect(isNew({ observedGeneration: 1 })).toBe(true)
  expect(isNew({ ...none, conditions: [paused] })).toBe(true)
  expect(isNew({ ...none, replicas: 1, conditions: [paused] })).toBe(false)
  expect(isNew({ ...none, conditions: [{ ...paused, status: 'False' }] })).toBe(false)
})

it('the epoch of a primary that vanished while nobody led is known from the last report', () => {
  const { snapshot } = observe(
    makeSet(),
    { observedGeneration: 1, slots: [{ slot: 2, pod: 'gone', epoch: 5, ready: true }] },
    makeDeps(),
  )
  expect(snapshot.epochs.get(2)).toBe(5)
})

it.each(['1970-01-01T00:00:00Z', '2099-01-01T00:00:00Z'])(
  'R31: since when a primary is not ready is counted from when it was seen, whatever clock its node has: %s',
  async lastTransitionTime => {
    const clock = createFakeClock()
    const pods = createStore<Pod>({ indexes: podIndexes })
    const set = makeSet()
    let version = 0
    const podOf = (status: string, time: string): Pod => ({
      metadata: {
        ...{ name: 'web-p', namespace: set.namespace, uid: 'p', resourceVersion: `${++version}` },
        creationTimestamp: '2000-01-01T00:00:00Z',
        labels: {
          'backup.example.com/backuppodset': set.name,
          type: 'primary',
          'backup.example.com/slot': '0',
        },
        ownerReferences: [
          {
            ...{ apiVersion: 'backup.example.com/v1alpha1', kind: 'BackupPodSet', controller: true },
            ...{ name: set.name, uid: set.uid },
          },
        ],
      },
      status: { conditions: [{ type: 'Ready', status, lastTransitionTime: time }] },
    })
    const deps = { ...makeDeps(clock), pods }
    const unreadyMs = () => {
      const { now, pods: seen } = observe(set, undefined, deps).snapshot
      const at = seen[0]?.unreadySince
      return at === undefined ? undefined : now - at
    }
    pods.upsert(podOf('False', lastTransitionTime))
    expect(unreadyMs()).toBe(0)
    await clock.advance(29_000)
    expect(unreadyMs()).toBe(29_000)
    // The pod was Ready in between, although no pass saw that: a new unready period.
    pods.upsert(podOf('False', '2050-01-01T00:00:00Z'))
    expect(unreadyMs()).toBe(0)
    pods.upsert(podOf('True', '2050-01-01T00:00:00Z'))
    expect(unreadyMs()).toBeUndefined()
  },
)

it('of a set that keeps no memory any more a promoted pod whose app has ended serves nobody, and counts as failed in time', () => {
  const clock = createFakeClock()
  const pods = createStore<Pod>({ indexes: podIndexes })
  const set = makeSet()
  const times = { lastTransitionTime: '2000-01-01T00:00:00Z' }
  const podWith = (resourceVersion: string, containerID: string): Pod => ({
    metadata: {
      ...{ name: 'web-p', namespace: set.namespace, uid: 'p', resourceVersion },
      creationTimestamp: '2000-01-01T00:00:00Z',
      labels: {
        'backup.example.com/backuppodset': set.name,
        type: 'primary',
        'backup.example.com/slot': '0',
      },
      annotations: { [memoryAnnotation]: memoryKept },
    },
    spec: { containers: [{ name: 'app' }], initContainers: [{ name: holdInitContainer }] },
    status: {
      conditions: [
        { ...times, type: 'Ready', status: 'True' },
        {
          ...{ ...times, type: podConditions.serving, status: 'True' },
          message: 'epoch 2: app is c://1; generation 3 of 2030-01-01T00:00:00Z',
        },
      ],
      containerStatuses: [{ name: 'app', containerID, image: '', imageID: '', ready: true, restartCount: 0 }],
    },
  })
  const deps = { ...makeDeps(clock), pods }
  const seen = () => observe(set, undefined, deps).snapshot.pods[0]
  pods.upsert(podWith('1', 'c://1'))
  expect(seen()).toMatchObject({ ready: true, unreadySince: undefined })
  // No probe fails and no agent reports a death: the container status itself shows it.
  pods.upsert(podWith('2', 'c://2'))
  expect(seen()).toMatchObject({ ready: false, unreadySince: clock.now() })
})
