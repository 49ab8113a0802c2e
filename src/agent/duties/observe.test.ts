import { expect, it } from 'vitest'
import type { BackupPodSet } from '../../api/backuppodset.ts'
import type { NodeReport } from '../../api/node-report.ts'
import { slotLeaseBody } from '../../api/slot-lease.ts'
import type { Lease, Pod } from '../../kube/resources.ts'
import { createStore } from '../../kube/store.ts'
import { createObserver, type World } from './observe.ts'
import { lease } from './testing/snapshots.ts'

const set = {
  metadata: { name: 'web', namespace: 'default', uid: 'now', resourceVersion: '1' },
  spec: {
    replicas: 1,
    checkpoint: {},
    template: { spec: { containers: [{ name: 'app', image: 'web:1' }] } },
  },
} as BackupPodSet

const slotsSeen = (owners: readonly string[], there = true) => {
  const [sets, leases] = [createStore<BackupPodSet>(), createStore<Lease>()]
  if (there) sets.upsert(set)
  const { metadata, spec } = slotLeaseBody(lease())
  const ownerReferences = owners.map(uid => ({ apiVersion: 'v1', kind: 'BackupPodSet', name: 'web', uid }))
  leases.upsert({ metadata: { ...metadata, uid: 'l', resourceVersion: '1', ownerReferences }, spec })
  const world = {
    ...{ node: 'a', pods: createStore<Pod>(), sets, leases, reports: createStore<NodeReport>() },
    ...{
      store: { list: () => [] },
      proven: new Set(),
      dead: new Map(),
      handoverPauses: { isOn: () => false },
    },
    understudies: { stages: () => new Map(), spoiled: () => new Set() },
  } as unknown as World
  return createObserver(world)({ able: true, sentinel: '1' }).slots.length
}

it('D7.owner: slots of a deleted set are not those of one that was made under its name', () => {
  expect(slotsSeen(['now'])).toBe(1)
  expect(slotsSeen(['before'])).toBe(0)
  // Left behind with its pods, on purpose.
  expect(slotsSeen([])).toBe(1)
  // Of a set that is not there any more, or not yet: nothing is known.
  expect(slotsSeen(['before'], false)).toBe(1)
})
