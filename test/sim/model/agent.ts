/** The agent of one machine: all real code that decides and acts, over a driver and a sentinel of the model. */

import { type Core, createCore, type Platform } from '../../../src/agent/core.ts'
import { type ListenOptions, listen } from '../../../src/agent/listen.ts'
import { createInquiry } from '../../../src/agent/observe/inquiry.ts'
import { askForAnswer } from '../../../src/agent/report/api-answer.ts'
import { patchCondition } from '../../../src/agent/report/conditions.ts'
import type { AgentMetrics } from '../../../src/agent/report/metrics.ts'
import { createNodeStatus } from '../../../src/agent/report/node-status.ts'
import { createReportWriter } from '../../../src/agent/report/report.ts'
import type { NodeCapabilities } from '../../../src/agent/tasks/task-context.ts'
import { createSaveTurns } from '../../../src/agent/transfer/turns.ts'
import { operatorElection } from '../../../src/api/election.ts'
import { type NodeReport, nodeReports, parseReport } from '../../../src/api/node-report.ts'
import type { SlotKey } from '../../../src/api/slot-key.ts'
import { groupSelector, parseSlotLease } from '../../../src/api/slot-lease.ts'
import { slotName } from '../../../src/checkpoint/manifest.ts'
import { unlessAborted } from '../../../src/kube/abort.ts'
import type { Clock } from '../../../src/kube/clock.ts'
import { silentLog as log } from '../../../src/kube/log.ts'
import { createReflector } from '../../../src/kube/reflector.ts'
import {
  type Lease,
  leases as leaseResource,
  type Pod,
  pods as podResource,
} from '../../../src/kube/resources.ts'
import { createStore } from '../../../src/kube/store.ts'
import { tokenDigest } from '../../../src/slot/gate/token.ts'
import type { AgentOptions } from './agent-options.ts'
import { goerOf, probeOf, pullerOf } from './agents-network.ts'
import { createModelDriver } from './driver.ts'
import { createVotingRequests } from './fence/requests.ts'
import { createMemoryStore } from './generations.ts'
import type { Kubelet } from './kubelet.ts'
import { createModelSentinel, deathOf } from './sentinel.ts'
import type { Machine } from './world.ts'

const nothing = () => undefined
/** The model reads no metrics. */
const metrics: AgentMetrics = {
  ...{ saved: nothing, received: nothing, shipped: nothing, restored: nothing, arrived: nothing },
  ...{ notLazy: nothing, pagesLost: nothing, promoted: nothing, deathTold: nothing, woke: nothing },
  ...{ refusedAtGate: nothing, failed: nothing, tasks: nothing, fenced: nothing },
}

const startMs = 1_000
const recallMs = 2_000
const canaryMs = 2_000

export async function runModelAgent(options: AgentOptions): Promise<void> {
  const { machine, volatile, party, api, time, random, signal } = options
  const clock = time.clockOf(party)
  // An agent does not know its copies before it has looked; until then the report keeps the previous agent's content.
  const node = { able: false }
  const nowNs = () => BigInt(Math.round(clock.monotonic() * 1e6))
  const report = createReportWriter({ api, node: machine.name, clock, nowNs, log })
  const { address, fingerprint } = machine
  const about = { version: '1', address, fingerprint, clones: true }
  const status = createNodeStatus(about, { kernel: '6', criu: '4', architecture: 'x86_64' }, report)
  const { stores, reflectors } = openCaches(options, clock)
  status.publish()
  const running = [...reflectors.map(reflector => reflector.run(signal)), report.run(signal)]
  await Promise.all(reflectors.map(reflector => reflector.synced(signal)))

  // Time to install programs, connect to the sentinel, and read the copies on this node.
  await clock.sleep(random.next() * startMs, signal)
  const store = createMemoryStore(volatile.shelf, clock, options.nextName, machine.images)
  const sentinel = sentinelOf(options, clock)
  const leaseOf = ({ namespace, name }: SlotKey) => {
    const lease = stores.leases.get(`${namespace}/${name}`)
    return lease && parseSlotLease(lease)
  }
  const driver = createModelDriver({
    ...{ machine, time, clock, random, clones: volatile.clones },
    ended: (pod, _, app) => options.discarded(pod, app),
    thawed: (pod, clone) => options.thawed(pod, clone),
  })
  const peers = { pull: pullerOf(options, clock, store, leaseOf) }
  const tools = toolsOf(options, clock, { driver, sentinel, store, peers })
  const platform: Platform = {
    ...{ tools, stores, random },
    state: {
      get sentinel() {
        return `${machine.boot}.${machine.voting.restarts}`
      },
      get able() {
        return node.able
      },
    },
    patch: (pod, condition, given) => patchCondition({ api, clock }, pod, condition, given),
    report(slots, run) {
      Object.assign(status, { slots, run })
      status.publish()
    },
    askApi: (timeoutMs, given) => askForAnswer({ api, node: machine.name, clock, nowNs }, timeoutMs, given),
    announced: slot => volatile.news.tell(slotName(slot)),
    sweepPods: async () => undefined,
    defer: run => time.after(party, 0, run),
  }
  const core = createCore(platform, signal)
  options.listens(core.agree)
  await hearSentinel(options, sentinel, core, clock)
  report.onAnswer(core.answered)
  core.begin(signal)
  const present = () => platform.state.sentinel
  const listening = listenFor(options, { sentinel, core, status, present, clock, log })
  // Time to restore the state that outlived the boot from the disk; deaths are reported meanwhile.
  await clock.sleep(random.next() * recallMs, signal)
  time.after(party, canaryMs + random.next() * 3_000, () => {
    node.able = true
    status.checks = [{ name: 'canary', ok: true, message: '' }]
    status.publish()
    core.changed()
  })
  await Promise.all([core.run(signal), listening, ...running])
}

const sentinelOf = ({ machine, time, party, kubelet, beats }: AgentOptions, clock: Clock) => ({
  ...createModelSentinel(machine, time, clock, kubelet),
  ...createVotingRequests(machine, time, party, beats),
})

async function hearSentinel(
  { machine, time, party, heartbeatPort, signal }: AgentOptions,
  sentinel: ReturnType<typeof sentinelOf>,
  core: Core,
  clock: Clock,
): Promise<void> {
  core.recall(await sentinel.watches(signal))
  machine.listener = watch => time.after(party, 0, () => core.onDeath(deathOf(time, watch)))
  for (const watch of machine.watches.values()) if (watch.diedAt !== undefined) machine.listener(watch)
  if (heartbeatPort === undefined) return
  sentinel.onVoting(core.onVoting)
  // An agent that finds no sentinel starts one.
  while (!machine.voting.isUp) await clock.sleep(100, signal)
  await sentinel.tellVotes(signal)
}

async function listenFor(
  { machine: { fingerprint }, heartbeatPort: port, signal }: AgentOptions,
  agent: Omit<ListenOptions, 'port' | 'key'>,
): Promise<void> {
  if (port !== undefined) await listen({ ...agent, port, key: { publicKey: fingerprint } }, signal)
}

function toolsOf(
  options: AgentOptions,
  clock: Clock,
  given: Pick<NodeCapabilities, 'driver' | 'sentinel' | 'store' | 'peers'>,
): NodeCapabilities {
  const { machine, volatile, api, kubelet } = options
  const inquiry = createInquiry({ api, node: machine.name, election: operatorElection, clock })
  return {
    ...{ ...given, node: machine.name, metrics, clock, log },
    ...(options.trace && { trace: options.trace }),
    // A secret of these two machines.
    heartbeatKey: ({ key }) => [machine.fingerprint, key].sort().join(' '),
    ...{ inquiry, unhurried: inquiry },
    inheritedConnections: { begin: () => undefined },
    gates: {
      async tell({ uid }, containerId, line) {
        await clock.sleep(1)
        return openGate(machine, kubelet(), uid, containerId, line.split(' ')[2] ?? '')
      },
      refused: async () => 0,
    },
    go: goerOf(options, clock),
    reach: (_, signal) => unlessAborted(new Promise(() => undefined), signal),
    grantFiles: {
      left: [...volatile.grants.values()],
      async save(record) {
        await clock.sleep(1)
        volatile.grants.set(slotName(record.slot), record)
      },
      remove: async slot => void volatile.grants.delete(slotName(slot)),
    },
    restorableKinds: { kinds: machine.proven, add: async kind => void machine.proven.add(kind) },
    measureVolumes: async () => 0,
    draftBytes: async () => ({ archived: 0, written: 0 }),
    probe: probeOf(options, clock),
    runCommand: async () => ({ outcome: 'success' }),
    saves: createSaveTurns(2),
    obstacles: async () => [],
    event: () => undefined,
  }
}

/** The agent's caches, of the pods of its machine only. */
function openCaches({ machine, api, random }: AgentOptions, clock: Clock) {
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
      query: { fieldSelector: `spec.nodeName=${machine.name}`, labelSelector: groupSelector },
    }),
    createReflector({
      ...common,
      resource: leaseResource,
      store: stores.leases,
      query: { labelSelector: groupSelector },
    }),
    createReflector({
      ...common,
      ...{ resource: nodeReports, store: stores.reports, transform: parseReport },
    }),
  ]
  return { stores, reflectors }
}

/** Answers like a gate, whatever the transport. */
export function openGate(
  machine: Machine,
  kubelet: Kubelet,
  uid: string,
  containerId: string,
  token: string,
): string {
  const pod = machine.pods.get(uid)
  if (pod === undefined || pod.killed) return 'refused'
  if (pod.gate === undefined) return 'already'
  if (containerId !== '' && pod.gate.id !== containerId) return 'denied'
  if (tokenDigest(token) !== pod.gate.digest) return 'denied'
  pod.gate = undefined
  kubelet.look()
  return 'woken'
}
