/** The capabilities that a machine of the model gives to the tasks of its agent. */
import type { TaskContext } from '../../../src/agent/duties/task-context.ts'
import { createInquiry } from '../../../src/agent/inquiry.ts'
import type { AgentMetrics } from '../../../src/agent/metrics.ts'
import { operatorElection } from '../../../src/api/election.ts'
import { parseSlotLease, type SlotKey, slotLeaseName } from '../../../src/api/slot-lease.ts'
import { silentLog as log } from '../../../src/kube/log.ts'
import type { Lease } from '../../../src/kube/resources.ts'
import type { Store } from '../../../src/kube/store.ts'
import type { AgentOptions } from './agent-options.ts'
import { createModelDriver } from './driver.ts'
import { openGate } from './gate.ts'
import { createMemoryStore } from './generations.ts'
import { createModelPeers } from './peers.ts'
import { createModelSentinel } from './sentinel.ts'
import { answers } from './world.ts'

const nothing = () => undefined
/** The model reads no metrics. */
const metrics: AgentMetrics = {
  ...{ saved: nothing, received: nothing, shipped: nothing, restored: nothing, arrived: nothing },
  ...{ notLazy: nothing, pagesLost: nothing, promoted: nothing, deathTold: nothing, woke: nothing },
  ...{ refusedAtGate: nothing, failed: nothing, duties: nothing },
}

export type AgentTools = Pick<
  TaskContext,
  | 'node'
  | 'driver'
  | 'sentinel'
  | 'inquiry'
  | 'store'
  | 'peers'
  | 'inheritedConnections'
  | 'gates'
  | 'restorableKinds'
  | 'probe'
  | 'measureVolumes'
  | 'draftBytes'
  | 'runCommand'
  | 'obstacles'
  | 'event'
  | 'metrics'
  | 'clock'
  | 'log'
>

export function createTools(options: AgentOptions, leases: Store<Lease>, changed: () => void): AgentTools {
  const { machine, volatile, party, api, time, random } = options
  const clock = time.clockOf(party)
  const store = createMemoryStore(volatile.shelf, clock, options.nextName)
  const leaseOf = ({ namespace, set, slot }: SlotKey) => {
    const lease = leases.get(`${namespace}/${slotLeaseName(set, slot)}`)
    return lease && parseSlotLease(lease)
  }
  return {
    node: machine.name,
    driver: createModelDriver({
      ...{ machine, time, clock, random, clones: volatile.clones },
      ended: (pod, _, app) => options.discarded(pod, app),
      thawed: (pod, clone) => options.thawed(pod, clone),
    }),
    sentinel: createModelSentinel(machine, time, clock, options.kubelet),
    inquiry: createInquiry({ api, node: machine.name, election: operatorElection, clock }),
    store,
    peers: createModelPeers(options, store, leaseOf),
    inheritedConnections: { begin: () => undefined },
    gates: {
      async tell({ uid }, containerId, line) {
        await clock.sleep(1)
        return openGate(machine, options.kubelet(), uid, containerId, line.split(' ')[2] ?? '')
      },
      refused: async () => 0,
    },
    restorableKinds: {
      kinds: machine.proven,
      add: async kind => {
        machine.proven.add(kind)
        changed()
      },
    },
    measureVolumes: async () => 0,
    draftBytes: async () => ({ archived: 0, written: 0 }),
    probe: createProbe(options),
    runCommand: async () => ({ outcome: 'success' }),
    obstacles: async () => [],
    event: () => undefined,
    metrics,
    clock,
    log,
  }
}

/** Asks the app itself, and lets an app exit that exits by itself. */
function createProbe(options: AgentOptions): NonNullable<TaskContext['probe']> {
  const { machine, party, time } = options
  const clock = time.clockOf(party)
  return async (_, { address }, { signal: given }) => {
    await clock.sleep(1, given)
    const pod = [...machine.pods.values()].find(({ ip, killed }) => ip === address && !killed)
    const container = pod?.containers.find(({ name, up }) => name === 'app' && up)
    const app = container?.app
    if (app !== undefined && answers(app, time.now())) return { outcome: 'success' }
    if (pod !== undefined && app?.exitsMs !== undefined)
      time.after(machine.kernel, app.exitsMs, () => options.exits(pod, app))
    return { outcome: 'failure', message: 'no answer' }
  }
}
