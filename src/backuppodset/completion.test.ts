import { describe, expect, it } from 'vitest'
import { labels } from '../api/labels.ts'
import { podConditions } from '../api/pod-contract.ts'
import type { Pod } from '../kube/resources.ts'
import { makeCandidate, makeLease, makeSlot } from '../slot/testing/slots.ts'
import { completionIn, isEndUntold } from './completion.ts'
import { makeSet } from './testing/snapshots.ts'

const template = { spec: { restartPolicy: 'OnFailure', containers: [{ name: 'app', image: 'app' }] } }
const set = makeSet({ template })
const at = '2030-01-01T00:00:05Z'

type Status = NonNullable<Pod['status']>
type State = NonNullable<NonNullable<Status['containerStatuses']>[number]['state']>

const podOf = (
  states: readonly State[],
  { kind = 'primary', restartCount = 0, deleted = false, phase = 'Succeeded' } = {},
): Pod => ({
  metadata: {
    ...{ name: 'sum-1', namespace: 'shop', uid: 'u1', resourceVersion: '1' },
    labels: { [labels.type]: kind, [labels.slot]: '0' },
    ...(deleted && { deletionTimestamp: at }),
  },
  spec: { containers: states.map((_, index) => ({ name: `c${index}` })) },
  status: {
    phase,
    containerStatuses: states.map((state, index) => ({
      ...{ name: `c${index}`, image: '', imageID: '', ready: false, restartCount, state },
      containerID: `containerd://c${index}`,
    })),
  },
})
const ended = (exitCode: number, finishedAt = at): State => ({ terminated: { exitCode, finishedAt } })
const memoryOf = (uid: string, restarts = 0) => {
  const lease = makeLease({ ...makeCandidate('sum-1', 'primary'), uid, slot: 0, epoch: 1 })
  const slot = makeSlot(lease, [], { restarts })
  return { slots: new Map([[0, slot]]), copies: 2, nodes: new Map() }
}
const completion = (pod: Pod, memory = memoryOf('u1')) => completionIn(set, undefined, [pod], memory)

describe('MP-29: the work of a set is done', () => {
  it('when all containers of the pod with the slot have ended with success', () => {
    expect(completion(podOf([ended(0)]))).toEqual({ pod: 'sum-1', at })
    const later = '2030-01-01T00:00:09Z'
    expect(completion(podOf([ended(0, later), ended(0)]))?.at).toBe(later)
    // Before the operator has seen that it answers, too.
    expect(completion(podOf([ended(0)], { kind: 'hotbackup' }))).toBeDefined()
    expect(completionIn(set, undefined, [podOf([ended(0)])], undefined)).toBeDefined()
  })

  it('for good, even if its pod is gone', () => {
    const told = { completion: { pod: 'sum-0', at } }
    expect(completionIn(set, told, [], undefined)).toEqual(told.completion)
  })

  it.each([
    ['a container still runs', podOf([ended(0), { running: {} }])],
    ['a container has failed', podOf([ended(0), ended(1)])],
    ['a container has not started', podOf([{ waiting: {} }])],
    ['sidecars still run', podOf([ended(0)], { phase: 'Running' })],
    [
      'the kubelet has evicted the pod, and its app has ended in time',
      podOf([ended(0)], { phase: 'Failed' }),
    ],
    ['the pod was told to end', podOf([ended(0)], { deleted: true })],
    ['the kubelet had started the app anew in a dead pod', podOf([ended(0)], { restartCount: 1 })],
  ])('not when %s', (_, pod) => {
    expect(completion(pod)).toBeUndefined()
  })

  it('not when another pod has the slot, nor in a set whose pods are restarted always', () => {
    expect(completion(podOf([ended(0)]), memoryOf('u2'))).toBeUndefined()
    expect(completionIn(makeSet(), undefined, [podOf([ended(0)])], memoryOf('u1'))).toBeUndefined()
  })

  it('in the incarnation that began when the kubelet started the app anew', () => {
    expect(completion(podOf([ended(0)], { restartCount: 2 }), memoryOf('u1', 2))).toBeDefined()
  })
})

describe('MP-29: the end of an app', () => {
  const died = (message: string, state: State, phase = 'Running'): Pod => {
    const pod = podOf([state], { phase })
    const condition = { type: podConditions.serving, status: 'False', reason: 'Died', message }
    return { ...pod, status: { ...pod.status, conditions: [condition] } }
  }

  it('is untold while the kubelet says that the container runs which has died', () => {
    expect(isEndUntold(died('container c0 (containerd://c0) ended', { running: {} }))).toBe(true)
    expect(isEndUntold(died('container c0 (containerd://c0) ended', ended(1)))).toBe(false)
    expect(isEndUntold(died('container c0 (containerd://c0) ended', ended(0)))).toBe(true)
    expect(isEndUntold(died('container c0 (containerd://c0) ended', ended(0), 'Failed'))).toBe(false)
    expect(isEndUntold(died('container c0 (containerd://before) ended', { running: {} }))).toBe(false)
    expect(isEndUntold(podOf([{ running: {} }]))).toBe(false)
  })
})
