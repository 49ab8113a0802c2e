/** Dependencies of takeovers, for tests that perform actions on slots. */
import { silentLog } from '../../kube/log.ts'
import { fakeApi } from '../../kube/testing/fake-api.ts'
import type { SlotContext } from '../act/context.ts'
import { createInFlightPromotions } from '../act/in-flight-promotions.ts'
import { createPendingDeletions } from '../act/pending-deletions.ts'

const nothing = () => undefined

/** The owner `bps` of some kind. */
export const owner = {
  ...{ apiVersion: 'example.com/v1', kind: 'Owner' },
  ...{ namespace: 'default', name: 'bps', uid: 'set-uid' },
}

/** A leader that may write. Calls to the API server, gates and agents fail where a test answers none. */
export const makeSlotContext = (over: Partial<SlotContext> = {}): SlotContext => ({
  owner,
  service: undefined,
  wakeupTimeoutMs: 5_000,
  api: fakeApi(),
  urgentApi: fakeApi(),
  pendingDeletions: createPendingDeletions(nothing),
  inFlightPromotions: createInFlightPromotions(() => Promise.resolve()),
  openGate: () => Promise.reject(new Error('this test opens no gate')),
  podOf: nothing,
  sliceOf: nothing,
  awaitServing: () => Promise.reject(new Error('this test calls no pod on stage')),
  failedOnStage: nothing,
  giveState: () => Promise.reject(new Error('this test has no states')),
  heldState: nothing,
  refusedState: nothing,
  beganAnew: nothing,
  requestedHandover: nothing,
  monotonic: () => 0,
  log: silentLog,
  finishedLate: nothing,
  signal: new AbortController().signal,
  ...over,
})
