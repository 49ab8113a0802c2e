/** One replica of the operator: its caches, its election and its controller, as the real one puts them together. */
import { type BackupPodSet, backupPodSets } from '../../../src/api/backuppodset.ts'
import { operatorElection } from '../../../src/api/election.ts'
import { labels } from '../../../src/api/labels.ts'
import { type NodeReport, nodeReports } from '../../../src/api/node-report.ts'
import { createSetController } from '../../../src/backuppodset/controller.ts'
import { failurePauses } from '../../../src/backuppodset/failures.ts'
import { leaseIndexes } from '../../../src/backuppodset/memory/observe.ts'
import { reportIndexes } from '../../../src/backuppodset/memory/reports.ts'
import type { SetMetrics } from '../../../src/backuppodset/metrics.ts'
import { podIndexes } from '../../../src/backuppodset/observe.ts'
import { revisionIndexes } from '../../../src/backuppodset/revisions/observe.ts'
import { serviceIndexes, sliceIndexes } from '../../../src/backuppodset/services/observe.ts'
import type { WakeReply, WakeRequest } from '../../../src/backuppodset/wake/wake.ts'
import type { Api } from '../../../src/kube/api-types.ts'
import { cacheView, createConsistencyStore } from '../../../src/kube/consistency.ts'
import { createElector } from '../../../src/kube/election.ts'
import { fenced } from '../../../src/kube/fence.ts'
import { freshen } from '../../../src/kube/freshen.ts'
import { silentLog as log } from '../../../src/kube/log.ts'
import type { KubeObject } from '../../../src/kube/object.ts'
import { createQueue } from '../../../src/kube/queue.ts'
import type { Random } from '../../../src/kube/random.ts'
import { createReflector, type Reflector } from '../../../src/kube/reflector.ts'
import {
  type ControllerRevision,
  controllerRevisions,
  type EndpointSlice,
  endpointSlices,
  type Lease,
  leases as leaseResource,
  type Node,
  type Pod,
  pods as podResource,
  type Resource,
  resourceName,
  type Service,
  services as serviceResource,
} from '../../../src/kube/resources.ts'
import { createStore, type MutableStore } from '../../../src/kube/store.ts'
import { createMemoryStore } from '../../../src/state-store/memory.ts'
import { createWriteBehind } from '../../../src/state-store/write-behind.ts'
import type { Party, VirtualTime } from './virtual-time.ts'

export interface OperatorOptions {
  readonly party: Party
  readonly api: Api
  readonly time: VirtualTime
  readonly random: Random
  readonly wakeKey: Uint8Array
  readonly wake: (request: WakeRequest) => Promise<WakeReply>
  readonly signal: AbortSignal
}

/** As long as the real one waits at first. */
const freshMs = 5_000
const nothing = () => undefined
const noMetrics: SetMetrics = {
  ...{ acted: nothing, woke: nothing, counted: nothing, forget: nothing, reset: nothing },
}

export async function runModelOperator(options: OperatorOptions): Promise<void> {
  const { party, api, time, random, signal } = options
  const clock = time.clockOf(party)
  const sets = createStore<BackupPodSet>()
  const pods = createStore<Pod>({ indexes: podIndexes })
  const leases = createStore<Lease>({ indexes: leaseIndexes })
  const reports = createStore<NodeReport>({ indexes: reportIndexes })
  const services = createStore<Service>({ indexes: serviceIndexes })
  const slices = createStore<EndpointSlice>({ indexes: sliceIndexes })
  const revisions = createStore<ControllerRevision>({ indexes: revisionIndexes })
  const ours = { labelSelector: labels.set }
  const mirror = <T extends KubeObject>(resource: Resource<T>, store: MutableStore<T>, query = {}) =>
    createReflector({ api, clock, random, log, resource, store, query })
  const reflectors: Readonly<Record<string, Reflector>> = {
    sets: mirror(backupPodSets, sets),
    pods: mirror(podResource, pods, ours),
    leases: mirror(leaseResource, leases, ours),
    reports: mirror(nodeReports, reports),
    services: mirror(serviceResource, services, ours),
    slices: mirror(endpointSlices, slices, ours),
    revisions: mirror(controllerRevisions, revisions, ours),
  }
  const mayWrite = () => elector.isLeader()
  const leaderApi = fenced(api, mayWrite)
  const queue = createQueue({ clock, name: 'backuppodset', backoff: failurePauses, random })
  const consistency = createConsistencyStore({
    cache: cacheView({
      [resourceName(backupPodSets)]: sets,
      [resourceName(podResource)]: pods,
      [resourceName(leaseResource)]: leases,
      [resourceName(serviceResource)]: services,
      [resourceName(endpointSlices)]: slices,
    }),
    ...{ clock, log },
  })
  const stateStore = createWriteBehind(createMemoryStore(clock), { clock, log })
  const controller = createSetController({
    ...{
      api: leaderApi,
      urgentApi: leaderApi,
      mayWrite,
      reign: () => elector.reign(),
      sets,
      pods,
      leases,
      reports,
      // It has no Node objects: none of its nodes has a label or a taint.
      nodes: createStore<Node>(),
      services,
      slices,
      revisions,
    },
    revisionsKnown: () => reflectors['revisions']?.hasSynced() === true,
    instance: party.name,
    memoryKnown: () => Object.values(reflectors).every(reflector => reflector.hasSynced()),
    permitted: 'everywhere',
    stateBudget: 2 ** 26,
    ...{ consistency, queue, stateStore },
    recorder: { record: nothing, flush: async () => 0, close: () => {} },
    settings: { wakerImage: 'waker', wakeKey: options.wakeKey },
    metrics: noMetrics,
    workers: 2,
    wake: options.wake,
    ...{ clock, random, log },
  })
  const elector = createElector({
    ...{ api, clock, random, log },
    ...{ ...operatorElection, identity: party.name },
  })
  const running = Object.values(reflectors).map(reflector => reflector.run(signal))
  try {
    await Promise.all(Object.values(reflectors).map(reflector => reflector.synced(signal)))
    const lead = async (stop: AbortSignal, lost: AbortSignal) => {
      await freshen({ caches: reflectors, patienceMs: freshMs, clock, log }, stop)
      await controller.run(stop, lost)
    }
    await elector.run({ onStarted: lead, signal })
  } finally {
    queue.shutdown()
    await Promise.all(running)
  }
}
