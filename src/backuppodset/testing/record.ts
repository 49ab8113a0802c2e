/** The record of a set, for tests that observe or reconcile one. */
import type { Clock } from '../../kube/clock.ts'
import { createHandoverTimes } from '../../slot/observe/handover-times.ts'
import { createSince } from '../../slot/observe/since.ts'
import { createActionRetries } from '../action-retries.ts'
import { createSpec } from '../in-force.ts'
import { createLateOutcomes } from '../late-outcomes.ts'
import { createPendingStatus } from '../pending-status.ts'
import type { SetRecord } from '../set-record.ts'
import { createStrandings } from '../strandings.ts'
import { makeContext } from './context.ts'

const nothing = () => undefined

/** The record of a set that an operator has just seen. Its status cannot be written unless a test says how. */
export const makeRecord = (clock: Clock, over: Partial<SetRecord> = {}): SetRecord => ({
  spec: createSpec(),
  lostPrimaries: { note: nothing, of: () => new Map(), repaired: nothing, clear: nothing },
  pendingStatus: createPendingStatus(clock),
  lateOutcomes: createLateOutcomes(),
  failoverHistory: { open: nothing, note: nothing, of: () => [] },
  actionRetries: createActionRetries(clock),
  reporter: { report: () => Promise.reject(new Error('this test writes no status')) },
  namespace: { isKnown: () => false, ask: async () => false, note: nothing },
  gates: { look: () => [] },
  claims: { look: async () => {}, of: () => [], againAfterMs: nothing },
  handoverTimes: createHandoverTimes(),
  strandings: createStrandings(clock),
  pulled: {
    ...{ loaded: () => true, facts: nothing, after: nothing, acts: () => makeContext() },
    view: () => ({ slots: new Map() }),
  },
  since: { memory: createSince(clock), pods: createSince(clock), caches: createSince(clock) },
  ...over,
})
