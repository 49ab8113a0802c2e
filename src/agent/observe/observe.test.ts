import { expect, it } from 'vitest'
import { labels } from '../../api/labels.ts'
import type { NodeReport } from '../../api/node-report.ts'
import { savedAnnotation } from '../../api/pod-contract.ts'
import { restartsAnnotation, type SlotLease, slotLeaseBody } from '../../api/slot-lease.ts'
import { slotName } from '../../checkpoint/manifest.ts'
import type { Lease, Pod } from '../../kube/resources.ts'
import { createStore } from '../../kube/store.ts'
import { fence, lease, policy } from '../testing/fake/snapshots.ts'
import { createObserver, type World } from './observe.ts'

const observerOf = (leases: World['leases'], pods: World['pods'] = createStore()) =>
  createObserver({
    ...{ node: 'a', pods, leases, reports: createStore<NodeReport>() },
    ...{
      store: { list: () => [] },
      state: { able: true, sentinel: '1' },
      proven: new Set<string>(),
      dead: new Map<string, string>(),
      handoverPauses: { isOn: () => false },
      fence: fence(),
      grants: { records: new Map(), alive: new Map<string, number>() },
    },
    understudies: { stages: () => new Map(), spoiled: () => new Set() },
  })

const ownedBy = (uid: string) => ({
  ownerReferences: [{ apiVersion: 'v1', kind: 'BackupPodSet', name: 'web', uid, controller: true }],
})
const written = (said: SlotLease, version = '1', over: object = {}): Lease => {
  const { metadata, spec } = slotLeaseBody(said)
  return { metadata: { ...metadata, uid: 'l', resourceVersion: version, ...over }, spec }
}
const podOf = (over: Partial<Pod['metadata']> = {}): Pod => ({
  metadata: {
    ...{ name: 'p', namespace: 'default', uid: 'uid-p', resourceVersion: '1' },
    labels: { [labels.set]: 'web' },
    ...over,
  },
  spec: {
    containers: [
      { name: 'app', image: 'web:1' },
      { name: 'log', image: 'log:1' },
    ],
  },
  status: {
    containerStatuses: [{ name: 'app', image: 'web:1', imageID: '', ready: true, restartCount: 3 }],
  },
})

it('D7.owner: owners are read of Leases and pods', () => {
  const [leases, pods] = [createStore<Lease>(), createStore<Pod>()]
  leases.upsert(written(lease(), '1', ownedBy('before')))
  pods.upsert(podOf(ownedBy('now')))
  const seen = observerOf(leases, pods)()
  expect([seen.slots[0]?.owner, seen.pods[0]?.owner]).toEqual(['before', 'now'])
})

it('D7.unsettled: how often containers had been started again is read of a Lease, and of a pod', () => {
  const [leases, pods] = [createStore<Lease>(), createStore<Pod>()]
  const { annotations } = written(lease()).metadata
  leases.upsert(written(lease(), '1', { annotations: { ...annotations, [restartsAnnotation]: '2' } }))
  pods.upsert(podOf())
  const seen = observerOf(leases, pods)()
  expect(seen.restarts).toEqual(new Map([[slotName(lease()), 2]]))
  expect(seen.pods.map(pod => pod.containers[0]?.restarts)).toEqual([3])
})

it('D7.policy: a policy is read of the Lease of the slot, and of the version that is there', () => {
  const leases = createStore<Lease>()
  const observe = observerOf(leases)
  const seen = () => observe().slots[0]
  leases.upsert(written(lease({ policy: policy({ intervalMs: 7_000 }) })))
  const first = seen()
  expect(first?.policy?.intervalMs).toBe(7_000)
  // Every change of any pod causes a complete read.
  expect(seen()).toBe(first)
  leases.upsert(written(lease({ policy: policy({ intervalMs: 9_000 }) }), '2'))
  expect(seen()?.policy?.intervalMs).toBe(9_000)
  leases.upsert(written(lease({ policy: undefined }), '3'))
  expect(seen()).toMatchObject({ holders: ['b'] })
  expect(seen()?.policy).toBeUndefined()
})

it('D7.policy: a pod that does not say what is saved of it is seen by the policy of its slot, and no other', () => {
  const [leases, pods] = [createStore<Lease>(), createStore<Pod>()]
  const observe = observerOf(leases, pods)
  const seen = () => {
    const [view] = observe().pods
    return [view?.containers.map(({ name }) => name), view?.restoreHash]
  }
  pods.upsert(podOf())
  expect(seen()).toEqual([['app', 'log'], undefined])
  leases.upsert(written(lease({ holder: { name: 'q', uid: 'uid-q' } })))
  expect(seen()).toEqual([['app', 'log'], undefined])
  leases.upsert(written(lease(), '2'))
  expect(seen()).toEqual([['app'], policy().restoreHash])
  pods.upsert(podOf({ resourceVersion: '2', annotations: { [savedAnnotation]: 'log' } }))
  expect(seen()).toEqual([['log'], undefined])
})
