import { expect, it } from 'vitest'
import type { BackupPodSet } from '../api/backuppodset.ts'
import { labels } from '../api/labels.ts'
import type { Migration } from '../api/migration.ts'
import type { NodeReport } from '../api/node-report.ts'
import { type NumberedSlotLease, numberedSlotLeaseBody } from '../api/numbered-slot.ts'
import {
  holdInitContainer,
  migrationAnnotation,
  podConditions,
  successorAnnotation,
} from '../api/pod-contract.ts'
import { kindLabels } from '../api/pod-kind.ts'
import { tookOver } from '../api/slot-lease.ts'
import { createFakeClock } from '../kube/clock.ts'
import type { Lease, Node, Pod } from '../kube/resources.ts'
import { createStore } from '../kube/store.ts'
import { createSince } from '../slot/observe/since.ts'
import { leaseIndexes } from '../slot/observe/slot-leases.ts'
import { restoreFailed } from '../slot/observe/stage.ts'
import { makeReport } from '../slot/testing/objects.ts'
import { makeHolder, makeLease } from '../slot/testing/slots.ts'
import { observe } from './observe.ts'
import { createPatience } from './patience.ts'
import { createStops } from './stops.ts'

interface More {
  /** Uid of the Migration that made the hot backup of node `n2`, whose restore has failed. Absent: there is no such pod. */
  readonly failedOf?: string
  /** The source that the Migration has found before. */
  readonly source?: NonNullable<Migration['status']>['source']
  /** Uid of the earlier Migration that made the pod `h` for another slot. */
  readonly madeElsewhere?: string
  /** An earlier Migration moves slot 1, whose heir is the pod `h` of node `n2`, too. */
  readonly isRivalled?: boolean
}

function factsWith(
  over: Partial<NumberedSlotLease>,
  { failedOf, source, madeElsewhere, isRivalled }: More = {},
) {
  const clock = createFakeClock()
  const leases = createStore<Lease>({ indexes: leaseIndexes })
  for (const [name, slot] of [
    ['p', 0],
    ['q', 1],
  ] as const) {
    const { metadata, spec } = numberedSlotLeaseBody(
      makeLease(makeHolder(name, slot), { holders: ['n2'], ...over }),
    )
    leases.upsert({ metadata: { ...metadata, uid: `lease-${name}`, resourceVersion: '1' }, spec })
  }
  const pods = createStore<Pod>({ indexes: { set: () => ['default/bps'] } })
  pods.upsert({
    metadata: {
      ...{ namespace: 'default', name: 'p', uid: 'uid-p', resourceVersion: '1' },
      labels: { ...kindLabels('primary'), [labels.set]: 'bps', [labels.slot]: '0' },
    },
    spec: { nodeName: 'n-p', containers: [] },
  })
  const reports = createStore<NodeReport>()
  const nodes = createStore<Node>()
  if (failedOf !== undefined || over.heir !== undefined) {
    reports.upsert(makeReport('n2', { ready: true }))
    nodes.upsert({ metadata: { name: 'n2', uid: 'n2', resourceVersion: '1' } })
    pods.upsert({
      metadata: {
        ...{ namespace: 'default', name: 'h', uid: 'uid-h', resourceVersion: '1' },
        labels: { ...kindLabels('hotbackup'), [labels.set]: 'bps' },
        ...(failedOf && { annotations: { [successorAnnotation]: '0', [migrationAnnotation]: failedOf } }),
        ...(madeElsewhere && {
          annotations: { [successorAnnotation]: '1', [migrationAnnotation]: madeElsewhere },
        }),
      },
      spec: { nodeName: 'n2', containers: [], initContainers: [{ name: holdInitContainer }] },
      ...(failedOf && {
        status: {
          conditions: [
            { type: podConditions.understudy, status: 'False', reason: restoreFailed, message: 'torn' },
          ],
        },
      }),
    })
  }
  const migrations = createStore<Migration>()
  migrations.upsert({
    metadata: { namespace: 'default', name: 'm', uid: 'm', resourceVersion: '1' },
    spec: { source: { name: 'p' } },
    ...(source && { status: { phase: 'Stopping', source } }),
  })
  if (isRivalled)
    migrations.upsert({
      metadata: { namespace: 'default', name: 'a', uid: 'a', resourceVersion: '1' },
      spec: { source: { name: 'q' } },
      status: { phase: 'Preparing', source: { uid: 'uid-q', node: 'n-q', set: 'bps', slot: 1 } },
    })
  const views = observe({
    ...{ clock, leases, pods, migrations, since: createSince(clock), stops: createStops(clock) },
    patience: createPatience(clock),
    heard: { silentFor: () => 0 },
    ...{ sets: createStore<BackupPodSet>(), reports, nodes },
  })
  return views.find(({ name }) => name === 'm')?.facts
}

it('a primary whose memory may not be saved has none that could move, although its slot has a Lease', () => {
  expect(factsWith({})).toMatchObject({ type: 'held', source: { uid: 'uid-p', set: 'bps', slot: 0 } })
  expect(factsWith({ unsaved: true })).toMatchObject({ type: 'unkept' })
})

it('D16.again: a pod whose restore has failed is the end of the Migration that made it, and of no other', () => {
  expect(factsWith({}, { failedOf: 'm' })).toMatchObject({ target: { name: 'h', failed: 'torn' } })
  expect(factsWith({}, { failedOf: 'earlier' })).toMatchObject({ type: 'held', target: undefined })
})

it('D16.handed: a pod has moved only if it has handed its slot over; its successor after a loss says nothing of that', () => {
  const holder = { name: 't', uid: 'uid-t' }
  const source = { uid: 'uid-p', node: 'n-p', set: 'bps', slot: 0 }
  const taken = (handedOverBy?: string) =>
    factsWith({ holder, ...(handedOverBy && { handedOverBy }) }, { source })
  expect(taken('uid-p')).toMatchObject({ type: 'passed', isLoss: false })
  expect(taken(tookOver)).toMatchObject({ type: 'passed', isLoss: true })
  // A Lease of an earlier version says nothing.
  expect(taken()).toMatchObject({ type: 'passed', isLoss: false })
})

it('D16.several: a pod that is the heir of two moving slots is the target of one Migration', () => {
  const heir = { name: 'h', uid: 'uid-h', ip: undefined }
  expect(factsWith({ heir })).toMatchObject({ target: { name: 'h' } })
  expect(factsWith({ heir }, { isRivalled: true })).toMatchObject({ type: 'held', target: undefined })
})

it('a hot backup that was made for another slot, and is the heir of this one by now, is the target', () => {
  const heir = { name: 'h', uid: 'uid-h', ip: undefined }
  expect(factsWith({ heir }, { madeElsewhere: 'earlier' })).toMatchObject({ target: { name: 'h' } })
})
