/** The agent of one machine: all real code that decides and acts, over a driver and a sentinel of the model. */

import { createCore, type Platform } from '../../../src/agent/core.ts'
import { listen } from '../../../src/agent/listen.ts'
import { createInquiry } from '../../../src/agent/observe/inquiry.ts'
import { askForAnswer } from '../../../src/agent/report/api-answer.ts'
import { patchCondition } from '../../../src/agent/report/conditions.ts'
import type { AgentMetrics } from '../../../src/agent/report/metrics.ts'
import { createReportWriter } from '../../../src/agent/report/report.ts'
import type { NodeCapabilities } from '../../../src/agent/tasks/task-context.ts'
import type { PeerClient } from '../../../src/agent/transfer/client.ts'
import { AgentError } from '../../../src/api/agent-errors.ts'
import { operatorElection } from '../../../src/api/election.ts'
import {
  type Heartbeats,
  type NodeReport,
  nodeReports,
  parseReport,
  type SlotReport,
} from '../../../src/api/node-report.ts'
import type { SlotKey } from '../../../src/api/slot-key.ts'
import type { SlotLease } from '../../../src/api/slot-lease.ts'
import { groupSelector, parseSlotLease } from '../../../src/api/slot-lease.ts'
import { slotName } from '../../../src/checkpoint/manifest.ts'
import type { GenerationStore } from '../../../src/checkpoint/store.ts'
import type { Api } from '../../../src/kube/api-types.ts'
import type { Clock } from '../../../src/kube/clock.ts'
import { silentLog as log } from '../../../src/kube/log.ts'
import type { Random } from '../../../src/kube/random.ts'
import { createReflector } from '../../../src/kube/reflector.ts'
import {
  type Lease,
  leases as leaseResource,
  type Pod,
  pods as podResource,
} from '../../../src/kube/resources.ts'
import { createStore } from '../../../src/kube/store.ts'
import type { Probe } from '../../../src/probe/probe.ts'
import { originFault } from '../../../src/slot/decide/origin.ts'
import { tokenDigest } from '../../../src/slot/gate/token.ts'
import { type Clones, createModelDriver } from './driver.ts'
import type { Heartbeats as HeartbeatModel } from './fence/heartbeats.ts'
import { createVotingRequests } from './fence/requests.ts'
import { createMemoryStore, type Shelf, type ShelfNews } from './generations.ts'
import type { Kubelet } from './kubelet.ts'
import { createModelSentinel, deathOf } from './sentinel.ts'
import type { Party, VirtualTime } from './virtual-time.ts'
import { type App, answers, type Machine, type PodOnNode } from './world.ts'

/** State that a machine keeps for its agents; lost with its power. */
export interface Volatile {
  readonly shelf: Shelf
  readonly clones: Clones
  readonly news: ShelfNews
}

export interface AgentOptions {
  readonly machine: Machine
  readonly volatile: Volatile
  readonly party: Party
  readonly api: Api
  readonly time: VirtualTime
  readonly random: Random
  readonly kubelet: () => Kubelet
  readonly beats: HeartbeatModel
  /** Absent: the sentinel neither votes nor is voted on. */
  readonly heartbeatPort: number | undefined
  /** Returns another machine if this one can reach it. */
  readonly reach: (address: string) =>
    | {
        readonly machine: Machine
        readonly shelf: Shelf
        readonly news: ShelfNews
        readonly answers: boolean
      }
    | undefined
  readonly thawed: (
    pod: PodOnNode,
    by: { readonly slot: SlotKey; readonly epoch: number; readonly generation: number },
  ) => void
  readonly discarded: (pod: PodOnNode, app: App) => void
  /** Called when an app exits by itself. */
  readonly exits: (pod: PodOnNode, app: App) => void
  readonly nextName: () => string
  readonly signal: AbortSignal
}

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
const pullMs = 40

export async function runModelAgent(options: AgentOptions): Promise<void> {
  const { machine, volatile, party, api, time, random, signal } = options
  const clock = time.clockOf(party)
  // An agent does not know its copies before it has looked; until then the report keeps the previous agent's content.
  const node: NodeReported = { slots: undefined, able: false, heartbeats: undefined }
  const nowNs = () => BigInt(Math.round(clock.monotonic() * 1e6))
  const report = createReportWriter({ api, node: machine.name, clock, nowNs, log })
  const publish = () =>
    report.update({
      ...{ version: '1', address: machine.address, fingerprint: machine.fingerprint, kernel: '6', criu: '4' },
      ...{ architecture: 'x86_64', cpuFeatures: [] },
      checks: [{ name: 'canary', ok: node.able, message: '' }],
      ready: node.able,
      slots: node.slots,
      ...(node.heartbeats && { heartbeats: node.heartbeats }),
    })
  const { stores, reflectors } = openCaches(options, clock)
  publish()
  const running = [...reflectors.map(reflector => reflector.run(signal)), report.run(signal)]
  await Promise.all(reflectors.map(reflector => reflector.synced(signal)))

  // Time to install programs, connect to the sentinel, and read the copies on this node.
  await clock.sleep(random.next() * startMs, signal)
  const store = createMemoryStore(volatile.shelf, clock, options.nextName)
  const sentinel = {
    ...createModelSentinel(machine, time, clock, options.kubelet),
    ...createVotingRequests(machine, time, party, options.beats),
  }
  const leaseOf = ({ namespace, name }: SlotKey) => {
    const lease = stores.leases.get(`${namespace}/${name}`)
    return lease && parseSlotLease(lease)
  }
  const driver = createModelDriver({
    ...{ machine, time, clock, random, clones: volatile.clones },
    ended: (pod, _, app) => options.discarded(pod, app),
    thawed: (pod, clone) => options.thawed(pod, clone),
  })
  const tools = toolsOf(options, clock, {
    driver,
    sentinel,
    store,
    peers: { pull: pullerOf(options, clock, store, leaseOf) },
  })
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
    report(slots) {
      node.slots = slots
      publish()
    },
    askApi: (timeoutMs, given) => askForAnswer({ api, node: machine.name, clock, nowNs }, timeoutMs, given),
    announced: slot => volatile.news.tell(slotName(slot)),
    sweepPods: async () => undefined,
    defer: run => time.after(party, 0, run),
  }
  const core = createCore(platform, signal)
  core.recall(await sentinel.watches(signal))
  machine.listener = watch => time.after(party, 0, () => core.onDeath(deathOf(time, watch)))
  for (const watch of machine.watches.values()) if (watch.diedAt !== undefined) machine.listener(watch)
  sentinel.onVoting(core.onVoting)
  report.onAnswer(core.answered)
  // An agent that finds no sentinel starts one.
  while (!machine.voting.isUp) await clock.sleep(100, signal)
  if (options.heartbeatPort !== undefined) await sentinel.tellVotes(signal)
  core.begin(signal)
  // Time to restore the state that outlived the boot from the disk; deaths are reported meanwhile.
  await clock.sleep(random.next() * recallMs, signal)
  time.after(party, canaryMs + random.next() * 3_000, () => {
    node.able = true
    publish()
    core.changed()
  })
  const listening =
    options.heartbeatPort === undefined
      ? undefined
      : listen(
          {
            ...{ sentinel, core, clock, log, port: options.heartbeatPort },
            key: { publicKey: machine.fingerprint },
            status: Object.assign(node, { publish }),
            present: () => platform.state.sentinel,
          },
          signal,
        )
  await Promise.all([core.run(signal), listening, ...running])
}

/** The content of a report that changes. */
interface NodeReported {
  slots: readonly SlotReport[] | undefined
  able: boolean
  heartbeats: Heartbeats | undefined
}

function toolsOf(
  options: AgentOptions,
  clock: Clock,
  given: Pick<NodeCapabilities, 'driver' | 'sentinel' | 'store' | 'peers'>,
): NodeCapabilities {
  const { machine, api, kubelet } = options
  return {
    ...{ ...given, node: machine.name, metrics, clock, log },
    // A secret of these two machines.
    heartbeatKey: ({ key }) => [machine.fingerprint, key].sort().join(' '),
    inquiry: createInquiry({ api, node: machine.name, election: operatorElection, clock }),
    inheritedConnections: { begin: () => undefined },
    gates: {
      async tell({ uid }, containerId, line) {
        await clock.sleep(1)
        return openGate(machine, kubelet(), uid, containerId, line.split(' ')[2] ?? '')
      },
      refused: async () => 0,
    },
    restorableKinds: { kinds: machine.proven, add: async kind => void machine.proven.add(kind) },
    measureVolumes: async () => 0,
    draftBytes: async () => ({ archived: 0, written: 0 }),
    probe: probeOf(options, clock),
    runCommand: async () => ({ outcome: 'success' }),
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

/** Pulls as the client for peers does: waits for a newer generation of a machine that it can reach. */
const pullerOf =
  (
    { machine, party, time, random, reach }: AgentOptions,
    clock: Clock,
    store: GenerationStore,
    leaseOf: (slot: SlotKey) => SlotLease | undefined,
  ): PeerClient['pull'] =>
  async (slot, peer, epoch, given) => {
    for (;;) {
      await clock.sleep(pullMs + random.next() * 40, given)
      const there = reach(peer.address)
      if (there === undefined || !there.answers || peer.fingerprint !== there.machine.fingerprint) {
        await clock.sleep(1_000, given)
        throw new AgentError('PeerUnreachable', peer.address)
      }
      const next = there.shelf.get(slotName(slot))?.[0]
      const ours = store.latest(slot)
      const isNewer =
        next !== undefined &&
        (ours === undefined ||
          next.manifest.epoch > ours.manifest.epoch ||
          (next.manifest.epoch === ours.manifest.epoch &&
            next.manifest.generation > ours.manifest.generation))
      if (!isNewer || next.manifest.epoch > epoch) {
        await there.news.wait(slotName(slot), party, time, given)
        continue
      }
      const fault = originFault({ ...next.manifest, signer: undefined }, leaseOf(slot))
      if (fault !== undefined) throw new AgentError('GenerationImplausible', fault)
      const draft = await store.begin(slot, next.manifest.generation)
      const image = there.machine.images.get(next.dir)
      if (image !== undefined) machine.images.set(draft.dir, image)
      const { files: _, bytes: __, ...manifest } = next.manifest
      return draft.commit(manifest)
    }
  }

/** Asks an app as the network would. Some apps exit a little after a probe. */
const probeOf =
  ({ machine, time, exits }: AgentOptions, clock: Clock): Probe =>
  async (_, { address }, { signal: given }) => {
    await clock.sleep(1, given)
    const pod = [...machine.pods.values()].find(({ ip, killed }) => ip === address && !killed)
    const container = pod?.containers.find(({ name, up }) => name === 'app' && up)
    const app = container?.app
    if (app !== undefined && answers(app, time.now())) return { outcome: 'success' }
    if (pod !== undefined && app?.exitsMs !== undefined)
      time.after(machine.kernel, app.exitsMs, () => exits(pod, app))
    return { outcome: 'failure', message: 'no answer' }
  }
