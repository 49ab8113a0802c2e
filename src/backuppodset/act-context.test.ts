import { expect, it } from 'vitest'
import type { BackupPodSet } from '../api/backuppodset.ts'
import { createFakeClock } from '../kube/clock.ts'
import type { Pod } from '../kube/resources.ts'
import { createStore } from '../kube/store.ts'
import { makeObject } from '../kube/testing/fake-api.ts'
import { createActContext } from './act-context.ts'
import type { SetEvent } from './action-events.ts'
import { observe } from './observe.ts'
import type { Outcome } from './plan.ts'
import { podIndexes } from './pod-indexes.ts'
import { createRecords } from './records.ts'
import { makeActDeps } from './testing/context.ts'
import { makeRecord } from './testing/record.ts'
import { makePod, makeSet } from './testing/snapshots.ts'

const nothing = () => undefined
const setObject = (uid: string): BackupPodSet =>
  makeObject({
    metadata: { namespace: 'default', name: 'bps', uid },
    spec: { replicas: 1, template: {} },
  })
const failover: Outcome = {
  type: 'done',
  action: {
    ...{ type: 'convert', pod: makePod('cold', 'coldbackup'), to: 'primary', wake: true },
    role: { slot: 0, epoch: 2, replaces: { name: 'p0', slot: 0, epoch: 1, reason: 'PodDeleted', seenAt: 0 } },
  },
  pod: undefined,
}

/** A pass over a set whose wake-up outlives it. */
function world() {
  const clock = createFakeClock()
  const sets = createStore<BackupPodSet>()
  const pods = createStore<Pod>({ indexes: podIndexes })
  const records = createRecords(sets, () => makeRecord(clock))
  sets.upsert(setObject('before'))
  const record = records.at('default/bps')
  if (record === undefined) throw new Error('the set is there')
  const set = makeSet({ uid: 'before' })
  const common = { pods, clock, record, isDeleted: () => false, wakening: nothing, setbackOf: nothing }
  const told: [uid: string | undefined, events: readonly SetEvent[]][] = []
  const context = createActContext(
    makeActDeps(clock, sets, { pods, notify: ({ metadata }, events) => told.push([metadata.uid, events]) }),
    {
      ...{ set, record, observed: observe(set, undefined, common) },
      context: { signal: new AbortController().signal, mustYield: () => false },
    },
  )
  const pending = () => records.at('default/bps')?.pendingStatus.of().lastFailover?.to
  return { sets, context, told, pending }
}

it('a wake-up that outlives its pass is told in the next status, and at once as an event', () => {
  const { context, told, pending } = world()
  context.finishedLate(failover)
  expect([pending(), told.map(([uid]) => uid)]).toEqual(['cold', ['before']])
})

it('a set that was created under the name of a deleted one is not told of its wake-ups', () => {
  const { sets, context, told, pending } = world()
  sets.remove('default/bps')
  sets.upsert(setObject('now'))
  context.finishedLate(failover)
  expect([pending(), told]).toEqual([undefined, []])
})
