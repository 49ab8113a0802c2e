import { expect, it } from 'vitest'
import type { BackupPodSet } from '../api/backuppodset.ts'
import { labels } from '../api/labels.ts'
import type { Migration } from '../api/migration.ts'
import type { NodeReport } from '../api/node-report.ts'
import { type NumberedSlotLease, numberedSlotLeaseBody } from '../api/numbered-slot.ts'
import { kindLabels } from '../api/pod-kind.ts'
import { createFakeClock } from '../kube/clock.ts'
import type { Lease, Node, Pod } from '../kube/resources.ts'
import { createStore } from '../kube/store.ts'
import { createSince } from '../slot/observe/since.ts'
import { leaseIndexes } from '../slot/observe/slot-leases.ts'
import { makeHolder, makeLease } from '../slot/testing/slots.ts'
import { observe } from './observe.ts'
import { createStops } from './stops.ts'

function factsWith(over: Partial<NumberedSlotLease>) {
  const clock = createFakeClock()
  const leases = createStore<Lease>({ indexes: leaseIndexes })
  const { metadata, spec } = numberedSlotLeaseBody(
    makeLease(makeHolder('p', 0), { holders: ['n2'], ...over }),
  )
  leases.upsert({ metadata: { ...metadata, uid: 'lease', resourceVersion: '1' }, spec })
  const pods = createStore<Pod>({ indexes: { set: () => ['default/bps'] } })
  pods.upsert({
    metadata: {
      ...{ namespace: 'default', name: 'p', uid: 'uid-p', resourceVersion: '1' },
      labels: { ...kindLabels('primary'), [labels.set]: 'bps', [labels.slot]: '0' },
    },
    spec: { nodeName: 'n-p', containers: [] },
  })
  const migrations = createStore<Migration>()
  migrations.upsert({
    metadata: { namespace: 'default', name: 'm', uid: 'm', resourceVersion: '1' },
    spec: { source: { name: 'p' } },
  })
  const [view] = observe({
    ...{ clock, leases, pods, migrations, since: createSince(clock), stops: createStops(clock) },
    ...{ sets: createStore<BackupPodSet>(), reports: createStore<NodeReport>(), nodes: createStore<Node>() },
  })
  return view?.facts
}

it('a primary whose memory may not be saved has none that could move, although its slot has a Lease', () => {
  expect(factsWith({})).toMatchObject({ type: 'held', source: { uid: 'uid-p', set: 'bps', slot: 0 } })
  expect(factsWith({ unsaved: true })).toMatchObject({ type: 'unkept' })
})
