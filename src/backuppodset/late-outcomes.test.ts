import { expect, it } from 'vitest'
import type { BackupPodSet } from '../api/backuppodset.ts'
import { annotations, labels, type PodKind } from '../api/labels.ts'
import { createFakeClock } from '../kube/clock.ts'
import { seededRandom } from '../kube/random.ts'
import type { Pod } from '../kube/resources.ts'
import { createStore } from '../kube/store.ts'
import { makeObject } from '../kube/testing/fake-api.ts'
import type { Wakening } from '../slot/observe/candidate.ts'
import { createActContext } from './act-context.ts'
import { observe } from './observe.ts'
import { makePass } from './pass.ts'
import type { Outcome } from './plan.ts'
import { podIndexes } from './pod-indexes.ts'
import { makeActDeps } from './testing/context.ts'
import { makeReconcileContext, makeReconcileDeps } from './testing/reconcile.ts'
import { makeRecord } from './testing/record.ts'
import { makePod, makeSet } from './testing/snapshots.ts'

const podObject = (kind: PodKind, slot?: number): Pod =>
  makeObject({
    metadata: {
      ...{ namespace: 'default', name: 'b0', uid: 'uid-b0' },
      labels: {
        ...{ [labels.set]: 'bps', [labels.type]: kind },
        ...(slot !== undefined && { [labels.slot]: `${slot}` }),
      },
      annotations: { [annotations.epoch]: '2' },
      ownerReferences: [
        {
          ...{ apiVersion: 'backup.example.com/v1alpha1', kind: 'BackupPodSet' },
          ...{ controller: true, name: 'bps', uid: 'set' },
        },
      ],
    },
    status: { phase: 'Running', conditions: [{ type: 'Ready', status: 'True' }] },
  })
const failover: Outcome = {
  type: 'done',
  action: {
    ...{ type: 'convert', pod: makePod('b0', 'hotbackup'), to: 'primary', wake: false },
    role: { slot: 0, epoch: 2, replaces: { name: 'p0', slot: 0, epoch: 1, reason: 'PodDeleted', seenAt: 0 } },
  },
  pod: podObject('primary', 0),
}

it('a takeover that ends while another pass is under way has its pod in the status that tells of it', async () => {
  const clock = createFakeClock()
  const sets = createStore<BackupPodSet>()
  const pods = createStore<Pod>({ indexes: podIndexes })
  const current: BackupPodSet = makeObject({
    metadata: { namespace: 'default', name: 'bps', uid: 'set', generation: 1 },
    spec: { replicas: 1, template: {} },
  })
  sets.upsert(current)
  pods.upsert(podObject('hotbackup'))
  let wakening: Wakening | undefined = { to: 'primary', slot: 0, epoch: 2 }
  const set = makeSet({ uid: 'set', replicas: 1, hotBackups: 0, coldBackups: 0 })
  const written: BackupPodSet['status'][] = []
  const record = makeRecord(clock, {
    reporter: {
      report: async (_, status) => {
        written.push(status)
        return { written: undefined, againAfterMs: undefined }
      },
    },
  })
  const act = makeActDeps(clock, sets, { pods })
  const deps = makeReconcileDeps({ ...{ sets, pods, clock, act, record }, wakening: () => wakening })
  const context = makeReconcileContext()
  // The pass that begins the takeover does not wait for its end.
  const acting = createActContext(act, {
    ...{ set, record, context },
    observed: observe(set, undefined, { ...deps, record }),
  })
  const pass = makePass(
    { ...deps, random: seededRandom(1) },
    { ...{ current, set, record, context }, refusal: undefined, isSpecPartial: false },
  )
  // It ends after the next pass has observed the pods.
  wakening = undefined
  acting.finishedLate(failover)
  await pass
  expect(written).toMatchObject([
    {
      lastFailover: { slot: 0, to: 'b0' },
      primaryPodNames: ['b0'],
      hotbackupPodNames: [],
      slots: [{ slot: 0, pod: 'b0', epoch: 2 }],
    },
  ])
})
