/** A node without processes: the memory of a pod is one word, and everything else is the agent's own code. */
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Registry } from 'prom-client'
import { AgentError, type AgentErrorCode } from '../../../api/agent-errors.ts'
import type { NodeReport } from '../../../api/node-report.ts'
import { formatServingRecord, servingRecordAnnotation } from '../../../api/serving-record.ts'
import type { SlotKey } from '../../../api/slot-key.ts'
import { parseSlotLease, type SlotLease, slotLeaseBody } from '../../../api/slot-lease.ts'
import type { SlotPolicy } from '../../../api/slot-policy.ts'
import { slotName } from '../../../checkpoint/manifest.ts'
import { createGenerationStore, type GenerationStore } from '../../../checkpoint/store.ts'
import { systemClock as clock } from '../../../kube/clock.ts'
import { KubeError } from '../../../kube/errors.ts'
import { silentLog as log } from '../../../kube/log.ts'
import { systemRandom as random } from '../../../kube/random.ts'
import type { Lease, Pod } from '../../../kube/resources.ts'
import { createStore, type MutableStore } from '../../../kube/store.ts'
import type { Probe } from '../../../probe/probe.ts'
import type { PodCondition } from '../../conditions.ts'
import type { Clone, LocatedPod, MemoryDriver } from '../../driver/memory-driver.ts'
import { createKeyedSignal } from '../../keyed-signal.ts'
import { createAgentMetrics } from '../../metrics.ts'
import type { Obstacle } from '../../obstacles/obstacle.ts'
import type { Death, ProcessRef, Watched } from '../../sentinel.ts'
import { createDeaths, lostPagesWhat } from '../deaths.ts'
import { isKeptElsewhere } from '../duties-of.ts'
import { createEngine } from '../engine.ts'
import { createHandoverPauses } from '../handover-pauses.ts'
import type { Predecessor } from '../inherited-connections.ts'
import { createLazyPages } from '../lazy-pages.ts'
import { createObserver } from '../observe.ts'
import { createPaces } from '../paces.ts'
import { perform } from '../perform.ts'
import { createProgress } from '../progress.ts'
import type { PodView } from '../snapshot.ts'
import { endGone } from '../stop-primary.ts'
import type { TaskContext } from '../task-context.ts'
import { createUnderstudies } from '../understudies.ts'
import { policy } from './snapshots.ts'

/** The state of the API server, which all nodes see. */
export interface FakeCluster {
  readonly pods: Map<string, MutableStore<Pod>>
  readonly leases: MutableStore<Lease>
  readonly reports: MutableStore<NodeReport>
  readonly stores: Map<string, GenerationStore>
  /** Leases as the API server has them; `leases` has the versions that agents have seen. */
  readonly truth: Map<string, Lease>
  /** Uids of pods that exist without our labels. */
  readonly unlabelled: Set<string>
  /** True while the API server answers no request. */
  isAway: boolean
  operatorLeads: boolean
  /** Puts or replaces a pod on a node. */
  put(node: string, pod: Pod): void
  /** Policy that the operator writes into every Lease; undefined: its version writes no policies. */
  policy: SlotPolicy | undefined
  setLease(lease: SlotLease, seen?: boolean): void
  /** Changes the policy, also in the Leases that exist. */
  writePolicy(over: Partial<SlotPolicy> | undefined): void
  pod(node: string, name: string): Pod | undefined
  condition(
    node: string,
    name: string,
    type: string,
  ): { status: string; reason?: string; message?: string } | undefined
}

let version = 1
const nextVersion = () => String(version++)

export function createFakeCluster(nodes: readonly string[]): FakeCluster {
  const pods = new Map(nodes.map(node => [node, createStore<Pod>()]))
  const cluster: FakeCluster = {
    pods,
    leases: createStore(),
    reports: createStore(),
    stores: new Map(),
    truth: new Map(),
    unlabelled: new Set(),
    isAway: false,
    operatorLeads: true,
    policy: policy({ intervalMs: 200 }),
    put(node, pod) {
      pods.get(node)?.upsert({ ...pod, metadata: { ...pod.metadata, resourceVersion: nextVersion() } })
    },
    setLease(lease, seen = true) {
      const { policy: _, ...rest } = lease
      const said = cluster.policy && { policy: cluster.policy }
      const { metadata, spec } = slotLeaseBody({ ...rest, ...said })
      const body = { metadata: { ...metadata, uid: metadata.name, resourceVersion: nextVersion() }, spec }
      cluster.truth.set(`${metadata.namespace}/${metadata.name}`, body)
      if (seen) cluster.leases.upsert(body)
    },
    writePolicy(over) {
      cluster.policy = over && policy({ intervalMs: 200, ...over })
      for (const lease of cluster.truth.values()) {
        const said = parseSlotLease(lease)
        if (said) cluster.setLease(said)
      }
    },
    pod: (node, name) => pods.get(node)?.get(`default/${name}`),
    condition: (node, name, type) =>
      cluster.pod(node, name)?.status?.conditions?.find(condition => condition.type === type),
  }
  return cluster
}

/** The memory and the processes of a node's pods, its redirects and stops. They survive agents. */
export interface FakeMemory {
  /** Words of the running apps, by uid of the pod. */
  readonly running: Map<string, string>
  readonly clones: Map<string, { clone: Clone; word: string }>
  readonly watches: Map<string, FakeWatch>
  /** Answers of gates, by uid of the pod. */
  readonly gates: Map<string, (line: string) => string>
  /** Pids of process trees that were killed, in order. */
  readonly kills: number[]
  /** Names of watches whose redirects were closed by a command, in order. */
  readonly burials: string[]
  /** Pods whose connections by way of a predecessor are to be ended, with that predecessor. */
  readonly parted: { readonly pod: string; readonly from: Predecessor }[]
  /** Suspensions of probes that are in effect, by uid of the pod. */
  readonly suspended: Set<{ readonly uid: string }>
  /** True while another tracer has the processes, so that they cannot be stopped. */
  refusesStops: boolean
  /** True while memory can be saved and restored here. */
  able: boolean
  /** Settles when the node's disk has been read after a reboot; the engine runs only then. */
  recalled: Promise<void> | undefined
  /** Targets of redirects that were closed at the removal of their watches; they last as long as the pods' networks. */
  readonly waysLeft: (string | undefined)[]
  /** Names of watches that still existed when the agent discarded their clone: it would count as a death. */
  readonly mourned: string[]
  /** True if the kernel has no rules for redirects. */
  noGraves: boolean
  readonly counts: { dumps: number; restores: number; thaws: number; discards: number }
  /** Names of the stops in effect. */
  readonly stops: Set<string>
  /** Names of stops that outlive the agent that requested them. */
  readonly kept: Set<string>
  /** Words whose restore fails, with the error code. */
  readonly broken: Map<string, AgentErrorCode>
  /** Obstacles to saving a pod, by its uid. */
  readonly obstacles: Map<string, readonly Obstacle[]>
  /** Arrivals of pages, by uid of the pod: resolves when all have arrived, rejects as the driver would. */
  readonly coming: Map<string, Promise<void>>
  /** Uids of the pods in which the driver works; two operations at once in one pod are an error. */
  readonly busy: Set<string>
  /** Total size of the layers and volumes of a pod. */
  volumeBytes: number
  /** Memory of the processes of a pod. */
  memoryBytes: number
  /** Duration of a freeze that each dump reports. */
  frozenSeconds: number
  /** Called right before a dump stops its pod. */
  beforeStop: () => void
  /** Called while a pod is stopped for its dump. */
  duringDump: (uid: string) => Promise<void> | void
  readonly directory: string
}

export interface FakeWatch {
  readonly process: ProcessRef
  readonly heir: string | undefined
  readonly lastsMs?: number | undefined
  readonly isClosed: boolean
  readonly died: boolean
}

export async function createFakeMemory(): Promise<FakeMemory> {
  return {
    running: new Map(),
    clones: new Map(),
    watches: new Map(),
    gates: new Map(),
    kills: [],
    burials: [],
    parted: [],
    noGraves: false,
    able: true,
    recalled: undefined,
    waysLeft: [],
    suspended: new Set(),
    refusesStops: false,
    mourned: [],
    counts: { dumps: 0, restores: 0, thaws: 0, discards: 0 },
    stops: new Set(),
    kept: new Set(),
    broken: new Map(),
    obstacles: new Map(),
    coming: new Map(),
    busy: new Set(),
    volumeBytes: 0,
    memoryBytes: 0,
    frozenSeconds: 0.001,
    beforeStop: () => undefined,
    duringDump: () => undefined,
    directory: await mkdtemp(join(tmpdir(), 'understudy-agent-')),
  }
}

export interface FakeAgent {
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
): Promise<FakeAgent> {
  const pods = cluster.pods.get(node) ?? createStore<Pod>()
  const store = createGenerationStore({ dir: memory.directory, budget: 1e9, clock, random })
  await store.load()
  cluster.stores.set(node, store)
  const stop = new AbortController()
  const generations = createKeyedSignal()
  const requests = createKeyedSignal()
  const kinds = new Set<string>()
  const changed = () => engine.changed()
  const driver = fakeDriver(memory)
  const lazyPages = createLazyPages({
    driver,
    store,
    metrics: { arrived: () => undefined },
    onLost: (uid, container) => {
      const pod = engine.podOf(uid)
      if (pod !== undefined && engine.matters(pod)) void deaths.declare(pod, container, lostPagesWhat)
    },
    clock,
    log,
  })
  const understudies = createUnderstudies(driver, changed, lazyPages.note)
  const progress = createProgress(changed)
  const handoverPauses = createHandoverPauses(clock)
  const paces = createPaces()
  const metrics = createAgentMetrics(new Registry(), () => store.bytes)
  const patch = async (pod: PodView, condition: PodCondition) => {
    const current = pods.get(`${pod.namespace}/${pod.name}`)
    if (current === undefined || current.metadata.uid !== pod.uid) return false
    const { record, ...said } = condition
    const rest = (current.status?.conditions ?? []).filter(({ type }) => type !== condition.type)
    const text = record && formatServingRecord(record, condition.message)
    const annotations = {
      ...current.metadata.annotations,
      ...(text !== undefined && { [servingRecordAnnotation]: text }),
    }
    cluster.put(node, {
      ...current,
      metadata: { ...current.metadata, annotations },
      status: { ...current.status, conditions: [...rest, said] },
    })
    return true
  }
  const deaths = createDeaths({
    podOf: uid => engine.podOf(uid),
    slotOf: pod => engine.slotOf(pod),
    holds: pod => engine.slotHeldBy(pod.uid) !== undefined,
    matters: pod => engine.matters(pod),
    patch,
    unwatch: name => memory.watches.delete(name),
    release: uid => {
      for (const { name } of watchesOf(memory)) if (name.startsWith(`${uid}/`)) memory.watches.delete(name)
    },
    changed,
    lostPages: lazyPages.wasLost,
    clock,
    log,
  })
  const watchNamed = (name: string): FakeWatch => {
    const watch = memory.watches.get(name)
    if (watch === undefined) throw new AgentError('SentinelRefused', 'unknown-name')
    return watch
  }
  const inquiry: TaskContext['inquiry'] = {
    lease: async ({ namespace, name }) => {
      if (cluster.isAway) throw new KubeError('Unavailable', 'away')
      const lease = cluster.truth.get(`${namespace}/${name}`)
      return lease && parseSlotLease(lease)
    },
    isThere: async ({ namespace, name, uid }) =>
      [...cluster.pods.values()].some(store => store.get(`${namespace}/${name}`)?.metadata.uid === uid),
    isHere: async uid =>
      cluster.unlabelled.has(uid) || pods.list().some(({ metadata }) => metadata.uid === uid),
    operatorLeads: async () => {
      if (cluster.isAway) throw new KubeError('Unavailable', 'away')
      return cluster.operatorLeads
    },
  }
  const sentinel: TaskContext['sentinel'] = {
    watch: async (name, process) => {
      const fresh: FakeWatch = { process, heir: undefined, isClosed: false, died: false }
      memory.watches.set(name, memory.watches.get(name) ?? fresh)
    },
    unwatch: async name => {
      const watch = memory.watches.get(name)
      if (watch?.isClosed === true) memory.waysLeft.push(watch.heir)
      memory.watches.delete(name)
    },
    watches: async () => watchesOf(memory),
    prepareRedirect: async ({ name, heir, netns, lastsMs }) => {
      if (memory.noGraves) throw new AgentError('SentinelRefused', 'grave: no nftables')
      const watch = watchNamed(name)
      if (netns === undefined && watch.heir === undefined) throw new AgentError('SentinelRefused', 'no-grave')
      memory.watches.set(name, { ...watch, heir, lastsMs, isClosed: watch.isClosed || watch.died })
    },
    redirect: async name => {
      const watch = watchNamed(name)
      if (watch.heir === undefined) throw new AgentError('SentinelRefused', 'no-grave')
      memory.watches.set(name, { ...watch, isClosed: true })
      memory.burials.push(name)
      return { microseconds: 1 }
    },
    undoRedirect: async name => void memory.watches.set(name, { ...watchNamed(name), isClosed: false }),
    stop: async ({ name }) => {
      if (memory.refusesStops) throw new AgentError('SentinelRefused', 'traced')
      memory.stops.add(name)
      return { count: 1, skewMicroseconds: 0 }
    },
    keep: async name => {
      if (memory.stops.has(name)) memory.kept.add(name)
      return memory.stops.has(name)
    },
    isDone: async name => {
      if (!memory.stops.has(name)) throw new AgentError('SentinelRefused', 'unknown-name')
      return false
    },
    continue: async name => {
      if (!memory.stops.delete(name)) throw new AgentError('SentinelRefused', 'unknown-name')
      return { heldMicroseconds: 1, expired: false }
    },
    treeKill: async ({ pid }) => {
      memory.kills.push(pid)
      for (const [uid] of memory.running) if (pidOf(uid) === pid) memory.running.delete(uid)
      return { count: 1 }
    },
  }
  const work: TaskContext = {
    node,
    driver,
    sentinel,
    inquiry,
    store,
    peers: { pull: (slot, { address }, _, signal) => pull(cluster, address, store, slot, signal) },
    understudies,
    lazyPages,
    inheritedConnections: { begin: (pod, _, from) => memory.parted.push({ pod: pod.name, from }) },
    gates: {
      tell: async ({ uid }, _, line) => memory.gates.get(uid)?.(line) ?? 'denied',
      refused: async () => 0,
    },
    restorableKinds: {
      kinds,
      add: async kind => {
        kinds.add(kind)
        changed()
      },
    },
    progress,
    handoverPauses,
    paces,
    deaths,
    patch: async (pod, condition) => (deaths.mayWrite(pod.uid, condition) ? patch(pod, condition) : true),
    podOf: uid => engine.podOf(uid),
    isKeptElsewhere: (lease, generation) => isKeptElsewhere(engine.snapshot, lease, generation),
    policyOf: slot => engine.policyOf(slot),
    slotHeldBy: uid => engine.slotHeldBy(uid),
    isToEnd: uid => engine.isToEnd(uid),
    matters: pod => engine.matters(pod),
    generations,
    requests,
    announce: slot => {
      generations.tell(slotName(slot))
      changed()
    },
    suspendProbes: uid => {
      const suspension = { uid }
      memory.suspended.add(suspension)
      return () => void memory.suspended.delete(suspension)
    },
    onProber: () => undefined,
    measureVolumes: async () => memory.volumeBytes,
    measureMemory: async () => memory.memoryBytes,
    probe,
    runCommand: async () => ({ outcome: 'success' }),
    obstacles: async ({ pod }) => memory.obstacles.get(pod.uid) ?? [],
    event: () => undefined,
    metrics,
    clock,
    log,
  }
  const observe = createObserver({
    node,
    pods,
    leases: cluster.leases,
    reports: cluster.reports,
    store,
    understudies,
    proven: kinds,
    dead: deaths.dead,
    handoverPauses,
  })
  const engine = createEngine({
    observe: () => observe({ able: memory.able, sentinel: '1' }),
    perform: (...about) => perform(work, ...about),
    deaths,
    store,
    progress,
    paces,
    report: slots => {
      const old = cluster.reports.get(node)
      if (JSON.stringify(old?.status?.slots) === JSON.stringify(slots)) return
      cluster.reports.upsert({
        metadata: { name: node, uid: node, resourceVersion: nextVersion() },
        status: {
          ...{
            version: '1',
            address: node,
            fingerprint: node,
            kernel: '6',
            criu: '4',
            architecture: 'x86_64',
          },
          ...{ checks: [], ready: true, slots, slotsKnown: true, updatedAt: '2030-01-01T00:00:00Z' },
        },
      })
    },
    patch,
    onGone: (uid, signal) => endGone(work, uid, signal),
    onRequest: requests.tell,
    onTrouble: () => undefined,
    leases: cluster.leases.list,
    sweepPods: async () => undefined,
    metrics,
    clock,
    random,
    log,
  })
  const ends = [pods, cluster.leases, cluster.reports].map(each => each.subscribe(changed))
  deaths.recall(watchesOf(memory))
  const dieNow = (name: string) => {
    const death: Death = { name, unixNs: 1n, grave: 'closed', graveMicroseconds: 1 }
    engine.onDeath(death)
  }
  // The sentinel reports these as soon as it has a connection, however long an agent's start takes.
  for (const [name, { died }] of memory.watches) if (died) dieNow(name)
  engine.begin(stop.signal)
  const running = (async () => {
    if (memory.recalled !== undefined) await memory.recalled
    await engine.run(stop.signal)
  })()
  return {
    die(uid, container = '') {
      for (const [name, watch] of memory.watches) {
        if (!name.startsWith(`${uid}/${container}`)) continue
        memory.watches.set(name, { ...watch, died: true, isClosed: watch.heir !== undefined })
        dieNow(name)
      }
    },
    async stop() {
      for (const end of ends) end()
      stop.abort(new Error('over'))
      await running
      // The sentinel resumes the processes that this connection had stopped, except those that the agent made it keep.
      for (const name of memory.stops) if (!memory.kept.has(name)) memory.stops.delete(name)
    },
  }
}

const watchesOf = (memory: FakeMemory): Watched[] =>
  [...memory.watches].map(([name, { process, heir, isClosed, died }]) => ({
    ...{ name, ...process },
    grave: heir === undefined ? 'none' : isClosed ? 'closed' : 'ready',
    diedUnixNs: died ? 1n : undefined,
  }))

const pidOf = (uid: string): number =>
  [...uid].reduce((sum, char) => (sum * 31 + char.charCodeAt(0)) % 100_000, 7)

function fakeDriver(memory: FakeMemory): MemoryDriver {
  /** Fails if another operation works on the same pod at the same time. */
  const alone = async <T>(uid: string, run: () => Promise<T>): Promise<T> => {
    if (memory.busy.has(uid)) throw new Error(`two at once in ${uid}`)
    memory.busy.add(uid)
    try {
      await clock.sleep(1)
      return await run()
    } finally {
      memory.busy.delete(uid)
    }
  }
  return {
    async locate(pod): Promise<LocatedPod> {
      const process = { pid: pidOf(pod.uid), start: 1 }
      if (!pod.promoted && !memory.running.has(pod.uid)) throw new AgentError('NotRunning')
      return {
        pod,
        containers: pod.containers.map(each => ({
          ...each,
          ...{ init: process, app: process, depth: 1, cgroups: [] },
        })),
      }
    },
    dump: ({ pod }, directory, { signal, onStopped }) =>
      alone(pod.uid, async () => {
        const word = memory.running.get(pod.uid)
        if (word === undefined) throw new AgentError('ProcessGone')
        memory.counts.dumps += 1
        if (memory.coming.has(pod.uid)) throw new AgentError('PagesComing')
        await writeFile(join(directory, 'word'), word)
        memory.beforeStop()
        onStopped?.()
        await memory.duringDump(pod.uid)
        signal.throwIfAborted()
        return {
          ...{
            takenAt: new Date().toISOString(),
            frozenSeconds: memory.frozenSeconds,
            skewSeconds: 0,
            criu: '4',
            kernel: '6',
          },
          ...{ architecture: 'x86_64', containers: [], volumes: [] },
        }
      }),
    restore: ({ pod, containers }, from, { lazily }) =>
      alone(pod.uid, async () => {
        const word = await readFile(join(from.dir, 'word'), 'utf8')
        memory.counts.restores += 1
        const broken = memory.broken.get(word)
        if (broken !== undefined) throw new AgentError(broken, word)
        const { slot, generation, epoch } = from.manifest
        const isComing = lazily !== undefined && memory.coming.has(pod.uid)
        const server = {
          container: 'app',
          server: { pid: 1, start: 1 },
          work: join(memory.directory, 'work'),
        }
        const clone: Clone = {
          ...{ podUid: pod.uid, slot, generation, epoch, stage: 'Frozen' },
          containers: containers.map(({ name, init }) => ({ name, hold: init, app: init, pidBelowHold: 2 })),
          ...(isComing && { pages: { servers: [server], directory: `${pod.uid}-${generation}` } }),
        }
        memory.clones.set(pod.uid, { clone, word })
        return clone
      }),
    thaw: clone =>
      alone(clone.podUid, async () => {
        const there = memory.clones.get(clone.podUid)
        if (there === undefined) throw new AgentError('CloneLost')
        memory.counts.thaws += 1
        const thawed: Clone = { ...clone, stage: 'Thawed' }
        memory.clones.set(clone.podUid, { clone: thawed, word: there.word })
        memory.running.set(clone.podUid, there.word)
        return thawed
      }),
    async settle(clone, signal) {
      const ended = new Promise<never>((_, reject) => {
        signal.addEventListener('abort', () => reject(signal.reason), { once: true })
      })
      await Promise.race([memory.coming.get(clone.podUid), ended])
      memory.coming.delete(clone.podUid)
      const { pages: _, ...whole } = clone
      return whole
    },
    discard: clone =>
      alone(clone.podUid, async () => {
        memory.counts.discards += 1
        for (const name of memory.watches.keys())
          if (name.startsWith(`${clone.podUid}/`)) memory.mourned.push(name)
        memory.clones.delete(clone.podUid)
        if (clone.stage === 'Thawed') memory.running.delete(clone.podUid)
      }),
    clonesOf: async ({ pod }) => memory.clones.get(pod.uid)?.clone,
  }
}

async function pull(
  cluster: FakeCluster,
  address: string,
  store: GenerationStore,
  slot: SlotKey,
  signal: AbortSignal,
) {
  for (;;) {
    signal.throwIfAborted()
    const next = cluster.stores.get(address)?.latest(slot)
    const ours = store.latest(slot)
    const isNewer =
      next !== undefined &&
      (ours === undefined ||
        next.manifest.epoch > ours.manifest.epoch ||
        (next.manifest.epoch === ours.manifest.epoch && next.manifest.generation > ours.manifest.generation))
    if (isNewer) {
      const draft = await store.begin(slot, next.manifest.generation)
      await writeFile(join(draft.dir, 'word'), await readFile(join(next.dir, 'word')).catch(() => ''))
      const { files: _, bytes: __, ...manifest } = next.manifest
      return draft.commit(manifest)
    }
    await clock.sleep(5, signal)
  }
}

export const dispose = (memory: FakeMemory) => rm(memory.directory, { recursive: true, force: true })
