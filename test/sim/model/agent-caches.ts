/** The caches of a model agent: the pods of its machine, and the Leases and reports of all. */
import { labels } from '../../../src/api/labels.ts'
import { type NodeReport, nodeReports } from '../../../src/api/node-report.ts'
import { silentLog as log } from '../../../src/kube/log.ts'
import { createReflector } from '../../../src/kube/reflector.ts'
import {
  type Lease,
  leases as leaseResource,
  type Pod,
  pods as podResource,
} from '../../../src/kube/resources.ts'
import { createStore } from '../../../src/kube/store.ts'
import type { AgentOptions } from './agent-options.ts'

export function createCaches({ machine, party, api, time, random }: AgentOptions) {
  const clock = time.clockOf(party)
  const stores = {
    pods: createStore<Pod>(),
    leases: createStore<Lease>(),
    reports: createStore<NodeReport>(),
  }
  const common = { api, clock, random, log }
  const reflectors = [
    createReflector({
      ...common,
      ...{ resource: podResource, store: stores.pods },
      query: { fieldSelector: `spec.nodeName=${machine.name}`, labelSelector: labels.set },
    }),
    createReflector({
      ...common,
      resource: leaseResource,
      store: stores.leases,
      query: { labelSelector: labels.set },
    }),
    createReflector({ ...common, resource: nodeReports, store: stores.reports }),
  ]
  return { stores, reflectors }
}
