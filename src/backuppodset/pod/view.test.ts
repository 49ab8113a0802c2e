import { describe, expect, it } from 'vitest'
import { annotations, deletionCostAnnotation, labels } from '../../api/labels.ts'
import type { Pod } from '../../kube/resources.ts'
import { gateContainerName } from './gate-container.ts'
import { viewOf } from './view.ts'

const at = (second: number) => new Date(second * 1000).toISOString()

/** A pod created as a cold backup at second 0 and now a primary; its Ready condition is False since second 1. */
const woken = (over: {
  state: object
  /** For a gate that stays: whether the kubelet has seen it open. */
  stays?: { started: boolean; behind?: object }
  initializedAt?: number
  readyAt?: number
  openedGate?: string
}): Pod => ({
  metadata: {
    name: 'p',
    namespace: 'default',
    uid: 'u',
    resourceVersion: '1',
    creationTimestamp: at(0),
    labels: { [labels.type]: 'primary' },
    annotations: over.openedGate === undefined ? {} : { [annotations.openedGate]: over.openedGate },
  },
  spec: {
    containers: [],
    initContainers: [
      { name: gateContainerName, ...(over.stays ? { restartPolicy: 'Always' } : {}) },
      { name: 'setup' },
    ],
  },
  status: {
    podIP: '10.0.0.1',
    conditions: [
      {
        type: 'Initialized',
        status: over.initializedAt === undefined ? 'False' : 'True',
        lastTransitionTime: at(over.initializedAt ?? 1),
      },
      { type: 'Ready', status: 'False', lastTransitionTime: at(over.readyAt ?? 1) },
    ],
    initContainerStatuses: [
      {
        name: gateContainerName,
        image: '',
        imageID: '',
        ready: false,
        restartCount: 0,
        containerID: 'c://1',
        state: over.state,
        ...(over.stays ? { started: over.stays.started } : {}),
      },
      ...(over.stays?.behind === undefined
        ? []
        : [{ name: 'setup', image: '', imageID: '', ready: false, restartCount: 0, ...over.stays.behind }]),
    ],
  },
})

describe('since when a pod that was a cold backup is unready', () => {
  it('not since its birth, but since its gate ended', () => {
    const pod = woken({ state: { terminated: { exitCode: 0, finishedAt: at(5000) } } })
    expect(viewOf(pod, undefined)).toMatchObject({ gate: 'open', unreadySince: 5_000_000, served: false })
  })

  it('with init containers behind the gate, since they ended', () => {
    const state = { terminated: { exitCode: 0, finishedAt: at(5000) } }
    expect(viewOf(woken({ state, initializedAt: 5060 }), undefined)?.unreadySince).toBe(5_060_000)
  })

  it('not at all until the kubelet has told the end of the gate', () => {
    const pod = woken({ state: { running: { startedAt: at(1) } }, openedGate: 'c://1' })
    expect(viewOf(pod, undefined)).toMatchObject({ gate: 'open', unreadySince: undefined })
  })

  it('of a gate that stays, since what is behind it could start', () => {
    const state = { running: { startedAt: at(1) } }
    const viewed = (stays: object, over = {}) =>
      viewOf(woken({ state, stays: { started: true, ...stays }, ...over }), undefined)
    expect(viewed({ started: false })).toMatchObject({ gate: 'waiting', unreadySince: 1000 })
    expect(viewed({})).toMatchObject({ gate: 'open', unreadySince: undefined })
    expect(viewed({}, { initializedAt: 5060 })?.unreadySince).toBe(5_060_000)
    const running = { state: { running: { startedAt: at(5001) } } }
    expect(viewed({ behind: running })?.unreadySince).toBe(5_001_000)
    const again = { state: { waiting: {} }, lastState: { terminated: { exitCode: 1, startedAt: at(5002) } } }
    expect(viewed({ behind: again })?.unreadySince).toBe(5_002_000)
  })

  it('a gate that stays and has ended is on its way back', () => {
    const pod = woken({
      state: { terminated: { exitCode: 0 } },
      stays: { started: false },
      openedGate: 'c://1',
    })
    expect(viewOf(pod, undefined)?.gate).toBe('starting')
  })

  it('has served when it was Ready after that', () => {
    const state = { terminated: { exitCode: 0, finishedAt: at(5000) } }
    const view = viewOf(woken({ state, initializedAt: 5000, readyAt: 5100 }), undefined)
    expect(view).toMatchObject({ unreadySince: 5_100_000, served: true })
  })
})

it.each([
  ['-2147483648', -2_147_483_648],
  ['2147483647', 2_147_483_647],
  ['0', 0],
  ['2147483648', undefined],
  ['+1', undefined],
  ['007', undefined],
  ['cheap', undefined],
  ['', undefined],
])('its deletion cost %j is read as Kubernetes does', (text, cost) => {
  const pod = woken({ state: {} })
  const metadata = { ...pod.metadata, annotations: { [deletionCostAnnotation]: text } }
  expect(viewOf({ ...pod, metadata }, undefined)?.deletionCost).toBe(cost)
})
