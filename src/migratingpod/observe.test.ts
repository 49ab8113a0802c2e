import { describe, expect, it } from 'vitest'
import type { BackupPodSet } from '../api/backuppodset.ts'
import { labels } from '../api/labels.ts'
import type { MigratingPod } from '../api/migrating-pod.ts'
import { numberedSlotLeaseBody } from '../api/numbered-slot.ts'
import { holdInitContainer } from '../api/pod-contract.ts'
import { bySet, setsNamedBy } from '../api/set-label.ts'
import { restartsAnnotation } from '../api/slot-lease.ts'
import type { Lease, Pod } from '../kube/resources.ts'
import { createStore } from '../kube/store.ts'
import { leaseIndexes } from '../slot/observe/slot-leases.ts'
import { makeHolder, makeLease } from '../slot/testing/slots.ts'
import { observe } from './observe.ts'

const named = { name: 'web', namespace: 'default', resourceVersion: '1' }
const template = { spec: { containers: [{ name: 'app', image: 'app' }] } }
const object: MigratingPod = { metadata: { ...named, uid: 'mpod' }, spec: { template } }
const ownedBy = (kind: string, uid: string) => ({
  ownerReferences: [{ apiVersion: 'backup.example.com/v1alpha1', kind, name: 'web', uid, controller: true }],
})
const set: BackupPodSet = {
  metadata: { ...named, uid: 'set', ...ownedBy('MigratingPod', 'mpod') },
  spec: { template },
}

/** A pod whose container the kubelet has restarted four times, and the Lease of its slot. */
function restartsOf({ holder = 'uid-web-0', owner = 'set', isUnderstudy = false, begun = 1 }) {
  const pods = createStore<Pod>({ indexes: { [bySet]: setsNamedBy } })
  pods.upsert({
    metadata: {
      ...{ ...named, name: 'web-0', uid: 'uid-web-0', ...ownedBy('BackupPodSet', 'set') },
      labels: { [labels.set]: 'web', [labels.type]: 'primary', [labels.slot]: '0' },
    },
    spec: {
      containers: [{ name: 'app' }],
      ...(isUnderstudy && { initContainers: [{ name: holdInitContainer }] }),
    },
    status: {
      containerStatuses: [{ name: 'app', image: '', imageID: '', ready: true, restartCount: 4 }],
    },
  })
  const leases = createStore<Lease>({ indexes: leaseIndexes })
  const lease = makeLease(makeHolder('web-0', 0), {
    ...{ name: 'web-0', group: 'web', owner, holder: { name: 'web-x', uid: holder } },
  })
  const { metadata, spec } = numberedSlotLeaseBody(lease)
  leases.upsert({
    spec,
    metadata: {
      ...{ ...named, ...metadata, uid: 'lease', ...ownedBy('BackupPodSet', owner) },
      annotations: { ...metadata.annotations, [restartsAnnotation]: String(begun) },
    },
  })
  const { view } = observe(object, {
    sets: { get: () => set },
    ...{ pods, leases, migrations: { by: () => [] } },
  })
  return view.pods.map(({ restarts }) => restarts)
}

describe('MP-29: how often its app has begun anew in a pod', () => {
  it('is what its slot says: not each restart of a container is a new start of the app', () => {
    expect(restartsOf({})).toEqual([1])
    expect(restartsOf({ begun: 0 })).toEqual([0])
  })

  it.each([
    ['another pod has the slot: the kubelet restarts what its agent has ended', { holder: 'uid-web-1' }],
    ['the Lease is that of an earlier set', { owner: 'old-set' }],
    ['its app was restored in it: that does not start again', { isUnderstudy: true }],
  ])('is not told if %s', (_, over) => {
    expect(restartsOf(over)).toEqual([undefined])
  })
})
