/** Dependencies of a pass, for tests that reconcile a set. */
import type { NodeReport } from '../../api/node-report.ts'
import type { Clock } from '../../kube/clock.ts'
import { silentLog } from '../../kube/log.ts'
import { seededRandom } from '../../kube/random.ts'
import type { ReconcileContext } from '../../kube/reconcile.ts'
import type { Lease, Pod } from '../../kube/resources.ts'
import { createStore, type Store } from '../../kube/store.ts'
import { createActionRetries } from '../action-retries.ts'
import { createSpecs } from '../in-force.ts'
import { createReports } from '../memory/reports.ts'
import { createRetirementDelay } from '../memory/retirement-delay.ts'
import { createSince } from '../memory/since.ts'
import { podIndexes } from '../observe.ts'
import { createPendingStatus } from '../pending-status.ts'
import type { ReconcileDeps } from '../reconcile.ts'
import { makeContext } from './context.ts'

const nothing = () => undefined

/** An operator that has caught up, without pods, nodes or memory. */
export const makeReconcileDeps = (
  over: Pick<ReconcileDeps, 'sets' | 'clock' | 'reporter'> & Partial<ReconcileDeps>,
): ReconcileDeps => ({
  pods: createStore<Pod>({ indexes: podIndexes }),
  random: seededRandom(1),
  lostPrimaries: { of: () => new Map(), repaired: nothing, forget: nothing },
  isDeleted: () => false,
  wakening: nothing,
  unlabelledPods: { of: () => [], forget: nothing, lookAgain: nothing },
  terminatingNamespaces: { has: () => false, note: nothing },
  gates: { look: () => [] },
  pendingStatus: createPendingStatus(over.clock),
  failoverHistory: { open: nothing, note: nothing, of: () => [] },
  pulled: {
    ...{ loaded: () => true, facts: nothing, after: nothing },
    ...{ view: () => ({ slots: new Map() }), refusal: nothing },
  },
  metrics: { acted: nothing, counted: nothing },
  actionRetries: createActionRetries(over.clock),
  specs: createSpecs(),
  caughtUp: () => true,
  missingForMemory: () => [],
  claims: { look: async () => {}, againAfterMs: nothing },
  allowsMemory: async () => true,
  forgetSet: nothing,
  writePolicy: async () => {},
  actContext: set => makeContext({ set }),
  notify: nothing,
  ...over,
})

/** Returns the dependencies of passes on memory: these Leases, and no reports. */
export const makeMemoryDeps = (leases: Store<Lease>, clock: Clock): NonNullable<ReconcileDeps['memory']> => ({
  leases,
  reports: createReports(createStore<NodeReport>(), clock),
  nodeOf: nothing,
  clock,
  isDeleted: () => false,
  claims: { of: () => [] },
  isPermitted: () => true,
  since: createSince(clock),
  handoverRequests: { requestedAt: nothing },
  failedOnStage: nothing,
  retirementDelay: createRetirementDelay(clock),
})

export const makeReconcileContext = (over: Partial<ReconcileContext> = {}): ReconcileContext => ({
  reconcileId: 'r',
  log: silentLog,
  signal: new AbortController().signal,
  priority: 0,
  mustYield: () => false,
  ...over,
})
