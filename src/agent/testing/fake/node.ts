/** A node without processes: the memory of a pod is one word, and everything else is the agent's own code. */
import { Registry } from 'prom-client'
import { AgentError } from '../../../api/agent-errors.ts'
import { slotName } from '../../../checkpoint/manifest.ts'
import type { Draft, GenerationStore } from '../../../checkpoint/store.ts'
import { createGenerationStore } from '../../../checkpoint/store.ts'
import { unlessAborted } from '../../../kube/abort.ts'
import { type Clock, systemClock } from '../../../kube/clock.ts'
import { silentLog as log } from '../../../kube/log.ts'
import { systemRandom as random } from '../../../kube/random.ts'
import type { Pod } from '../../../kube/resources.ts'
import { createStore } from '../../../kube/store.ts'
import type { Probe } from '../../../probe/probe.ts'
import { type Core, createCore, type Platform } from '../../core.ts'
import { createAgentMetrics } from '../../report/metrics.ts'
import type { NodeCapabilities } from '../../tasks/task-context.ts'
import { createSaveTurns } from '../../transfer/turns.ts'
import { type FakeCluster, fakeInquiry, patchIn, pull, reportIn } from './cluster.ts'
import { fakeDriver } from './driver.ts'
import type { FakeMemory } from './memory.ts'
import { fakeSentinel, watchesOf } from './sentinel.ts'

export interface FakeAgent extends Pick<Core, 'onVoting' | 'listens'> {
  /** Reports the death of a pod's app, as the sentinel would. */
  die(uid: string, container?: string): void
  stop(): Promise<void>
}

/** Starts an agent on a node, with the state that an earlier agent has left there. */
export async function startFakeAgent(
  cluster: FakeCluster,
  node: string,
  memory: FakeMemory,
  probe: Probe = async () => ({ outcome: 'success' }),
  clock: Clock = systemClock,
): Promise<FakeAgent> {
  const store = storeOf(memory, clock)
  await store.load()
  cluster.stores.set(node, store)
  const stop = new AbortController()
  const core = createCore(
    platformOf(cluster, node, memory, toolsOf(cluster, node, memory, store, probe, clock)),
    stop.signal,
  )
  core.recall(watchesOf(memory))
  cluster.agents.set(node, core.agree)
  const dieNow = (name: string) =>
    core.onDeath({ name, unixNs: BigInt(Date.now()) * 1_000_000n, grave: 'closed', graveMicroseconds: 1 })
  // The sentinel reports these as soon as it has a connection, however long an agent's start takes.
  for (const [name, { died }] of memory.watches) if (died) dieNow(name)
  core.begin(stop.signal)
  const running = (async () => {
    if (memory.recalled !== undefined) await memory.recalled
    await core.run(stop.signal)
  })()
  return {
    ...{ onVoting: core.onVoting, listens: core.listens },
    die(uid, container = '') {
      for (const [name, watch] of memory.watches) {
        if (!name.startsWith(`${uid}/${container}`)) continue
        memory.watches.set(name, { ...watch, died: true, isClosed: watch.heir !== undefined })
        dieNow(name)
      }
    },
    async stop() {
      cluster.agents.delete(node)
      stop.abort(new Error('over'))
      await running
      // The sentinel resumes the processes that this connection had stopped, except those that the agent made it keep.
      for (const name of memory.stops) if (!memory.kept.has(name)) memory.stops.delete(name)
    },
  }
}

/** A store with hooks. Its prototype is the real store, because a copy would keep the values of getters. */
function storeOf(memory: FakeMemory, clock: Clock): GenerationStore {
  const store = createGenerationStore({ dir: memory.directory, budget: 1e9, clock, random })
  const begin: GenerationStore['begin'] = async (...what) => {
    const draft = await store.begin(...what)
    const commit: Draft['commit'] = async (...how) => {
      await memory.beforeSeal()
      return draft.commit(...how)
    }
    return Object.create(draft, { commit: { value: commit } })
  }
  // Tests spy on it.
  return Object.create(store, { begin: { value: begin, writable: true, configurable: true } })
}

function toolsOf(
  cluster: FakeCluster,
  node: string,
  memory: FakeMemory,
  store: GenerationStore,
  probe: Probe,
  clock: Clock,
): NodeCapabilities {
  const kinds = new Set<string>()
  memory.registry = new Registry()
  return {
    node,
    driver: fakeDriver(memory),
    sentinel: fakeSentinel(memory),
    heartbeatKey: ({ key }) => (key === 'none' ? undefined : key),
    inquiry: fakeInquiry(cluster, node),
    unhurried: fakeInquiry(cluster, node),
    store,
    peers: { pull: (slot, { address }, _, signal) => pull(cluster, address, store, slot, signal) },
    async go({ address }, request, _, onSend) {
      const agree = cluster.agents.get(address)
      if (agree === undefined) throw new AgentError('PeerUnreachable', address)
      onSend()
      return await agree(node, request)
    },
    reach: (_, signal) => unlessAborted(new Promise(() => undefined), signal),
    grantFiles: {
      left: [...memory.grants.values()],
      save: async record => void memory.grants.set(slotName(record.slot), record),
      remove: async slot => void memory.grants.delete(slotName(slot)),
    },
    inheritedConnections: { begin: (pod, _, from) => memory.parted.push({ pod: pod.name, from }) },
    gates: {
      tell: async ({ uid }, _, line) => memory.gates.get(uid)?.(line) ?? 'denied',
      refused: async () => 0,
    },
    restorableKinds: { kinds, add: async kind => void kinds.add(kind) },
    measureVolumes: async () => memory.volumeBytes,
    measureMemory: async () => memory.memoryBytes,
    probe,
    runCommand: async () => ({ outcome: 'success' }),
    saves: createSaveTurns(2),
    obstacles: async ({ pod }) => memory.obstacles.get(pod.uid) ?? [],
    event: (_, __, reason) => void memory.events.push(reason),
    metrics: createAgentMetrics(memory.registry),
    clock,
    log,
  }
}

function platformOf(
  cluster: FakeCluster,
  node: string,
  memory: FakeMemory,
  tools: NodeCapabilities,
): Platform {
  const { leases, reports } = cluster
  return {
    tools,
    stores: { pods: cluster.pods.get(node) ?? createStore<Pod>(), leases, reports },
    state: {
      sentinel: '1',
      get able() {
        return memory.able
      },
    },
    probes: {
      suspendProbes: uid => {
        const suspension = { uid }
        memory.suspended.add(suspension)
        return () => void memory.suspended.delete(suspension)
      },
      onProber: () => undefined,
    },
    patch: patchIn(cluster, node),
    report: slots => reportIn(cluster, node, slots),
    announced: () => undefined,
    sweepPods: async () => undefined,
    random,
  }
}
