/** Dependencies of the executors, for tests that perform actions. */

import type { BackupPodSet } from '../../api/backuppodset.ts'
import type { Clock } from '../../kube/clock.ts'
import { cacheView, createConsistencyStore } from '../../kube/consistency.ts'
import { silentLog } from '../../kube/log.ts'
import { createQueue } from '../../kube/queue.ts'
import type { EndpointSlice, Pod } from '../../kube/resources.ts'
import { createStore, type Store } from '../../kube/store.ts'
import { fakeApi } from '../../kube/testing/fake-api.ts'
import { createInFlightPromotions } from '../../slot/act/in-flight-promotions.ts'
import { createPendingDeletions } from '../../slot/act/pending-deletions.ts'
import { createTerms } from '../../slot/act/term.ts'
import { makeSlotContext } from '../../slot/testing/slot-context.ts'
import type { ActContext } from '../act/context.ts'
import type { ActDeps } from '../act-context.ts'
import { ownerOf } from '../owner.ts'
import type { PodSettings } from '../pod/render.ts'
import { podIndexes } from '../pod-indexes.ts'
import { createSetbacks } from '../setbacks.ts'
import { makeSet } from './snapshots.ts'

const nothing = () => undefined
const settings: PodSettings = { wakerImage: 'waker', wakeKeys: [new Uint8Array(32)] }

/** The context of a leader that may write. Calls to the API server, gates and agents fail where a test answers none. */
export const makeContext = ({ set = makeSet(), ...over }: Partial<ActContext> = {}): ActContext => ({
  ...makeSlotContext(),
  set,
  owner: ownerOf(set),
  service: set.service,
  wakeupTimeoutMs: set.wakeupTimeout * 1000,
  settings,
  now: () => 0,
  instance: 'operator-1',
  finishedLate: nothing,
  isNamespaceTerminating: async () => false,
  mayWrite: () => true,
  mustYield: () => false,
  ended: nothing,
  ...over,
})

/** Dependencies that outlive the passes of a leader. Calls fail where a test answers none. */
export const makeActDeps = (
  clock: Clock,
  sets: Store<BackupPodSet>,
  over: Partial<ActDeps> = {},
): ActDeps => ({
  ...{ api: fakeApi(), urgentApi: fakeApi(), sets, clock, settings, log: silentLog, instance: 'operator-1' },
  // No cache shows any write, so no pass waits for one.
  consistency: createConsistencyStore({ cache: cacheView({}), clock, log: silentLog }),
  pods: createStore<Pod>({ indexes: podIndexes }),
  slices: createStore<EndpointSlice>(),
  queue: createQueue({ clock, name: 'test' }),
  terms: createTerms(),
  setbacks: createSetbacks(clock),
  pendingDeletions: createPendingDeletions(nothing),
  inFlightPromotions: createInFlightPromotions(() => Promise.resolve()),
  wake: () => Promise.reject(new Error('this test wakes no pod')),
  mayWrite: () => true,
  metrics: { acted: nothing, woke: nothing },
  notify: nothing,
  ...over,
})
