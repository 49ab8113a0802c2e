/** Dependencies of the executors, for tests that perform actions. */
import { silentLog } from '../../kube/log.ts'
import { fakeApi } from '../../kube/testing/fake-api.ts'
import type { ActContext } from '../act/context.ts'
import { createInFlightPromotions } from '../act/in-flight-promotions.ts'
import { ownerOf } from '../owner.ts'
import { createPendingDeletions } from '../pending-deletions.ts'
import { makeSet } from './snapshots.ts'

const nothing = () => undefined

/** The context of a leader that may write. Calls to the API server, gates and agents fail where a test answers none. */
export const makeContext = ({ set = makeSet(), ...over }: Partial<ActContext> = {}): ActContext => ({
  set,
  owner: ownerOf(set),
  service: set.service,
  wakeupTimeoutMs: set.wakeupTimeout * 1000,
  api: fakeApi(),
  urgentApi: fakeApi(),
  settings: { wakerImage: 'waker', wakeKeys: [new Uint8Array(32)] },
  pendingDeletions: createPendingDeletions(nothing),
  inFlightPromotions: createInFlightPromotions(() => Promise.resolve()),
  openGate: () => Promise.reject(new Error('this test opens no gate')),
  podOf: nothing,
  requestedHandover: nothing,
  sliceOf: nothing,
  awaitServing: () => Promise.reject(new Error('this test calls no pod on stage')),
  failedOnStage: nothing,
  giveState: () => Promise.reject(new Error('this test has no states')),
  heldState: nothing,
  refusedState: nothing,
  beganAnew: nothing,
  monotonic: () => 0,
  now: () => 0,
  instance: 'operator-1',
  log: silentLog,
  finishedLate: nothing,
  isNamespaceTerminating: async () => false,
  mayWrite: () => true,
  mustYield: () => false,
  ended: nothing,
  signal: new AbortController().signal,
  ...over,
})
