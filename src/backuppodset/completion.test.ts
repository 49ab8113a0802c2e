import { describe, expect, it } from 'vitest'
import { labels } from '../api/labels.ts'
import { holdInitContainer, podConditions } from '../api/pod-contract.ts'
import type { Pod } from '../kube/resources.ts'
import type { MemoryView } from '../slot/decide/memory-view.ts'
import { makeCandidate, makeLease, makeSlot } from '../slot/testing/slots.ts'
import { completingIn, endUntoldMs } from './completion.ts'
import { makeSet } from './testing/snapshots.ts'

const template = { spec: { restartPolicy: 'OnFailure', containers: [{ name: 'app', image: 'app' }] } }
const set = makeSet({ template })
const at = '2030-01-01T00:00:05Z'

type Status = NonNullable<Pod['status']>
type State = NonNullable<NonNullable<Status['containerStatuses']>[number]['state']>

const podOf = (
  states: readonly State[],
  { kind = 'primary', restartCount = 0, deleted = false, phase = 'Succeeded', owner = 'set-uid' } = {},
): Pod => ({
  metadata: {
    ...{ name: 'sum-1', namespace: 'shop', uid: 'u1', resourceVersion: '1' },
    labels: { [labels.type]: kind, [labels.slot]: '0' },
    ...(deleted && { deletionTimestamp: at }),
    ...(owner !== '' && {
      ownerReferences: [
        { apiVersion: 'v1', kind: 'BackupPodSet', name: 'sum', uid: owner, controller: true },
      ],
    }),
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
const look = (pod: Pod, memory: MemoryView = memoryOf('u1')) => completingIn(set, undefined, [pod], memory)
const completion = (pod: Pod, memory: MemoryView = memoryOf('u1')) => look(pod, memory).completed
const noLease: MemoryView = { slots: new Map(), copies: 2, nodes: new Map() }

describe('MP-29: the work of a set is done', () => {
  it('when all containers of the pod with the slot have ended with success', () => {
    expect(completion(podOf([ended(0)]))).toEqual({ pod: 'sum-1', at })
    const later = '2030-01-01T00:00:09Z'
    expect(completion(podOf([ended(0, later), ended(0)]))?.at).toBe(later)
    // Before the operator has seen that it answers, too.
    expect(completion(podOf([ended(0)], { kind: 'hotbackup' }))).toBeDefined()
    expect(completion(podOf([ended(0)]), noLease)).toBeDefined()
  })

  it('for good, even if its pod is gone, and the template does not end any more', () => {
    const told = { completion: { pod: 'sum-0', at } }
    expect(completingIn(set, told, [], undefined)).toEqual({ completed: told.completion })
    expect(completingIn(makeSet(), told, [], undefined)).toEqual({ completed: told.completion })
  })

  it('and everything waits until the status says so', () => {
    expect(look(podOf([ended(0)]))).toMatchObject({ completed: { pod: 'sum-1' }, isHeld: true })
  })

  it.each([
    ['an earlier set of this name', 'old-set'],
    ['no set', ''],
  ])('not by a pod of %s, whose labels are the same', (_, owner) => {
    const old = podOf([ended(0)], { owner })
    for (const memory of [noLease, memoryOf('u1'), { ...noLease, foreign: new Set([0]) }])
      expect(look(old, memory)).toEqual({})
  })

  it('not known while an earlier set has the Lease of the slot, or no Lease is known: everything waits', () => {
    const pod = podOf([ended(0)])
    expect(look(pod, { ...noLease, foreign: new Set([0]) })).toEqual({ isHeld: true })
    expect(look(pod, { ...noLease, foreign: new Set([1]) }).completed).toBeDefined()
    expect(completingIn(set, undefined, [pod], undefined)).toEqual({ isHeld: true })
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
    ['the kubelet had restarted the app in a dead pod', podOf([ended(0)], { restartCount: 1 })],
  ])('not when %s', (_, pod) => {
    expect(completion(pod)).toBeUndefined()
  })

  it('not when another pod has the slot, nor in a set whose pods are restarted always', () => {
    expect(completion(podOf([ended(0)]), memoryOf('u2'))).toBeUndefined()
    expect(completingIn(makeSet(), undefined, [podOf([ended(0)])], memoryOf('u1'))).toEqual({})
  })

  it('in the incarnation that began when the kubelet restarted the app', () => {
    expect(completion(podOf([ended(0)], { restartCount: 2 }), memoryOf('u1', 2))).toBeDefined()
  })
})

const serving = (pod: Pod, message: string, reason = 'Died', status = 'False'): Pod => ({
  ...pod,
  status: { ...pod.status, conditions: [{ type: podConditions.serving, status, reason, message }] },
})

describe('MP-29: the app that was restored in a pod', () => {
  const restored = { initContainers: [{ name: holdInitContainer }] }
  const held = (restartCount: number): Pod => {
    const pod = podOf([ended(0)], { restartCount })
    return { ...pod, spec: { containers: [{ name: 'c0' }], ...restored } }
  }

  it('has done the work however often its container was started before it came', () => {
    expect(completion(held(2))).toBeDefined()
    expect(completion(serving(held(2), 'container c0 (containerd://c0) has ended'))).toBeDefined()
    expect(completion(serving(held(1), 'epoch 2: c0 is containerd://c0', 'OnStage', 'True'))).toBeDefined()
  })

  it('has not if it has died, and its container was started once more', () => {
    expect(completion(serving(held(1), 'container c0 (containerd://before) has ended'))).toBeUndefined()
    const onStage = 'epoch 2: c0 is containerd://before; generation 3 of 2030-01-01T00:00:00Z'
    expect(completion(serving(held(1), onStage, 'OnStage', 'True'))).toBeUndefined()
  })
})

describe('MP-29: the end of an app', () => {
  const died = (message: string, state: State, phase = 'Running'): Pod =>
    serving(podOf([state], { phase }), message)

  it('is untold for 15 s while the kubelet says that the container runs which has died', () => {
    expect(endUntoldMs(died('container c0 (containerd://c0) ended', { running: {} }))).toBe(15_000)
    expect(endUntoldMs(died('container c0 (containerd://c0) ended', ended(1)))).toBeUndefined()
    expect(endUntoldMs(died('container c0 (containerd://c0) ended', ended(0), 'Failed'))).toBeUndefined()
    expect(endUntoldMs(died('container c0 (containerd://before) ended', { running: {} }))).toBeUndefined()
    expect(endUntoldMs(podOf([{ running: {} }]))).toBeUndefined()
  })

  it('is untold for as long as sidecars may take to end, once the kubelet has told the code', () => {
    const stopping = died('container c0 (containerd://c0) ended', ended(0))
    expect(endUntoldMs(stopping)).toBe(60_000)
    const spec = { containers: [{ name: 'c0' }], terminationGracePeriodSeconds: 600 }
    expect(endUntoldMs({ ...stopping, spec })).toBe(630_000)
  })
})
