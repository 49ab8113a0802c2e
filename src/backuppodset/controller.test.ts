import { expect, it } from 'vitest'
import type { BackupPodSet } from '../api/backuppodset.ts'
import { labels } from '../api/labels.ts'
import type { Migration } from '../api/migration.ts'
import type { NodeReport } from '../api/node-report.ts'
import type { Api } from '../kube/api.ts'
import { systemClock as clock } from '../kube/clock.ts'
import { cacheView, createConsistencyStore } from '../kube/consistency.ts'
import { silentLog as log } from '../kube/log.ts'
import { createQueue } from '../kube/queue.ts'
import { seededRandom } from '../kube/random.ts'
import type { ControllerRevision, EndpointSlice, Lease, Node, Pod, Service } from '../kube/resources.ts'
import { createStore } from '../kube/store.ts'
import { serviceIndexes, sliceIndexes } from '../slot/endpoints/observe.ts'
import { reportIndexes } from '../slot/observe/reports.ts'
import { leaseIndexes } from '../slot/observe/slot-leases.ts'
import type { SetName } from '../slot/report/named-sets.ts'
import { createMemoryStore } from '../state-store/memory.ts'
import { createWriteBehind } from '../state-store/write-behind.ts'
import { createSetController } from './controller.ts'
import { migrationIndexes } from './memory/moves.ts'
import { podIndexes } from './pod-indexes.ts'
import { revisionIndexes } from './revisions/observe.ts'

const nothing = () => undefined

/** The product's controller with its own subscriptions. It does not run, so that the test can take its keys. */
function onStage() {
  const sets = createStore<BackupPodSet>()
  const pods = createStore<Pod>({ indexes: podIndexes })
  const queue = createQueue({ clock, name: 'test' })
  const api = {} as Api
  const ended: string[] = []
  const metricsOf = (what: string) => ({
    forget: ({ namespace, name }: SetName) => void ended.push(`${what}: ${namespace}/${name}`),
    reset: () => void ended.push(`${what}: all`),
  })
  const controller = createSetController({
    ...{ api, urgentApi: api, mayWrite: () => true, reign: nothing, sets, pods, queue },
    leases: createStore<Lease>({ indexes: leaseIndexes }),
    reports: createStore<NodeReport>({ indexes: reportIndexes }),
    services: createStore<Service>({ indexes: serviceIndexes }),
    slices: createStore<EndpointSlice>({ indexes: sliceIndexes }),
    revisions: createStore<ControllerRevision>({ indexes: revisionIndexes }),
    revisionsKnown: () => true,
    migrations: createStore<Migration>({ indexes: migrationIndexes }),
    missingForMemory: () => [],
    permitted: 'everywhere',
    nodes: createStore<Node>(),
    instance: 'test',
    consistency: createConsistencyStore({ cache: cacheView({}), clock, log }),
    recorder: { record: nothing, flush: async () => 0, close: nothing },
    settings: { wakerImage: 'waker', wakeKeys: [new Uint8Array(32)] },
    metrics: { acted: nothing, woke: nothing, counted: nothing, ...metricsOf('sets') },
    pullMetrics: { pulled: nothing, pushed: nothing, refreshed: nothing, ...metricsOf('pulls') },
    stateStore: createWriteBehind(createMemoryStore(clock), { clock, log }),
    stateBudget: 2 ** 20,
    workers: 1,
    ...{ clock, random: seededRandom(1), log },
  })
  const taken = async () => {
    const keys: string[] = []
    while (queue.depth() > 0) {
      const item = await queue.take()
      if (item === undefined) break
      keys.push(item.key)
      queue.done(item.key)
    }
    return keys.map(key => key.slice('default/'.length))
  }
  return { sets, pods, queue, taken, controller, ended }
}

let version = 0
const next = () => {
  version += 1
  return String(version)
}
const setOf = (name: string) =>
  ({ metadata: { name, namespace: 'default', uid: `uid-${name}`, resourceVersion: next() } }) as BackupPodSet
const podOf = (set: string, kind: string, over: object = {}) =>
  ({
    metadata: {
      name: `${set}-${kind}`,
      ...{ namespace: 'default', uid: `uid-${set}-${kind}`, resourceVersion: next() },
      labels: { [labels.set]: set, [labels.type]: kind, [labels.slot]: '0' },
      ...over,
    },
    spec: { containers: [] },
  }) as Pod

it('F07: sets are taken in the order of their first news, each once, and one that lost a primary before all', async () => {
  const { sets, pods, taken } = onStage()
  for (const name of ['c', 'a', 'd', 'b']) sets.upsert(setOf(name))
  pods.upsert(podOf('d', 'primary'))
  pods.upsert(podOf('e', 'hotbackup'))
  sets.upsert(setOf('c'))
  expect(await taken()).toEqual(['c', 'a', 'd', 'b', 'e'])
  // The loss of a backup is ordinary news; the loss of a primary has priority, in order of arrival.
  pods.upsert(podOf('b', 'primary'))
  await taken()
  sets.upsert(setOf('a'))
  pods.remove('default/e-hotbackup')
  pods.upsert(podOf('d', 'primary', { deletionTimestamp: '2026-01-01T00:00:00Z' }))
  sets.upsert(setOf('c'))
  pods.remove('default/b-primary')
  expect(await taken()).toEqual(['d', 'b', 'a', 'e', 'c'])
})

it('D10.names: what metrics tell of a set ends with it, and what they tell of all sets with the term', async () => {
  const { sets, controller, ended } = onStage()
  sets.upsert(setOf('web'))
  sets.remove('default/web')
  const stop = new AbortController()
  const running = controller.run(stop.signal)
  await expect.poll(() => ended.toSorted()).toEqual(['pulls: default/web', 'sets: default/web'])
  stop.abort()
  await running
  expect(ended.slice(2).toSorted()).toEqual(['pulls: all', 'sets: all'])
  await controller.close()
})
