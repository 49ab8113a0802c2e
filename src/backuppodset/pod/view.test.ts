import { describe, expect, it } from 'vitest'
import { annotations, labels } from '../../api/labels.ts'
import type { Pod } from '../../kube/resources.ts'
import { gateContainerName } from './gate-container.ts'
import { viewOf } from './view.ts'

const at = (second: number) => new Date(second * 1000).toISOString()

/** A pod born as a cold backup at second 0 and now a primary; its Ready condition is False since second 1. */
const woken = (over: {
  state: object
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
  spec: { containers: [], initContainers: [{ name: gateContainerName }] },
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
      },
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

  it('has served when it was Ready after that', () => {
    const state = { terminated: { exitCode: 0, finishedAt: at(5000) } }
    const view = viewOf(woken({ state, initializedAt: 5000, readyAt: 5100 }), undefined)
    expect(view).toMatchObject({ unreadySince: 5_100_000, served: true })
  })
})
