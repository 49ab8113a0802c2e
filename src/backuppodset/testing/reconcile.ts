/** Dependencies of a pass, for tests that reconcile a set. */
import type { BackupPodSet } from '../../api/backuppodset.ts'
import type { NodeReport } from '../../api/node-report.ts'
import type { Clock } from '../../kube/clock.ts'
import { silentLog } from '../../kube/log.ts'
import { seededRandom } from '../../kube/random.ts'
import type { ReconcileContext } from '../../kube/reconcile.ts'
import type { Lease, Pod } from '../../kube/resources.ts'
import { createStore, type Store } from '../../kube/store.ts'
import { fakeApi } from '../../kube/testing/fake-api.ts'
import { createReports, reportIndexes } from '../../slot/observe/reports.ts'
import { createRetirementDelay } from '../memory/retirement-delay.ts'
import { podIndexes } from '../pod-indexes.ts'
import type { ReconcileDeps } from '../reconcile.ts'
import { createRecords } from '../records.ts'
import type { SetRecord } from '../set-record.ts'
import { makeActDeps } from './context.ts'
import { makeRecord } from './record.ts'

const nothing = () => undefined

/** An operator that has caught up, without pods, nodes or memory. `record`: what it remembers of each set. */
export function makeReconcileDeps({
  record,
  ...over
}: {
  readonly sets: Store<BackupPodSet>
  readonly clock: Clock
  readonly record: Partial<SetRecord>
} & Partial<ReconcileDeps>): ReconcileDeps {
  const records = createRecords(over.sets, () => makeRecord(over.clock, record))
  return {
    pods: createStore<Pod>({ indexes: podIndexes }),
    random: seededRandom(1),
    recordOf: records.at,
    isDeleted: () => false,
    wakening: nothing,
    setbackOf: nothing,
    unlabelledPods: { of: () => [], forget: nothing, lookAgain: nothing },
    metrics: { acted: nothing, counted: nothing },
    api: fakeApi(),
    consistency: { ready: () => true, onReady: nothing },
    queue: { add: nothing },
    missingForMemory: () => [],
    forgetName: nothing,
    writePolicy: async () => {},
    act: makeActDeps(over.clock, over.sets),
    notify: nothing,
    ...over,
  }
}

/** Returns the dependencies of passes on memory: these Leases, and no reports. */
export const makeMemoryDeps = (leases: Store<Lease>, clock: Clock): NonNullable<ReconcileDeps['memory']> => ({
  leases,
  reports: createReports(createStore<NodeReport>({ indexes: reportIndexes }), clock),
  nodeOf: nothing,
  clock,
  isDeleted: () => false,
  permitted: 'everywhere',
  storm: { heldForMs: () => 0 },
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
