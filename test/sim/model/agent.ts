/** The agent of one machine: all real code that decides and acts, over a driver and a sentinel of the model. */
import type { PodCondition } from '../../../src/agent/conditions.ts'
import { patchCondition } from '../../../src/agent/conditions.ts'
import { createDeaths, lostPagesWhat } from '../../../src/agent/duties/deaths.ts'
import { isKeptElsewhere } from '../../../src/agent/duties/duties-of.ts'
import { createEngine } from '../../../src/agent/duties/engine.ts'
import { createHandoverPauses } from '../../../src/agent/duties/handover-pauses.ts'
import { createLazyPages } from '../../../src/agent/duties/lazy-pages.ts'
import { createObserver } from '../../../src/agent/duties/observe.ts'
import { createPaces } from '../../../src/agent/duties/paces.ts'
import { perform } from '../../../src/agent/duties/perform.ts'
import { createProgress } from '../../../src/agent/duties/progress.ts'
import { dropWatch, release } from '../../../src/agent/duties/remains.ts'
import type { PodView } from '../../../src/agent/duties/snapshot.ts'
import { endGone } from '../../../src/agent/duties/stop-primary.ts'
import type { TaskContext } from '../../../src/agent/duties/task-context.ts'
import { createUnderstudies } from '../../../src/agent/duties/understudies.ts'
import { createInquiry } from '../../../src/agent/inquiry.ts'
import { createKeyedSignal } from '../../../src/agent/keyed-signal.ts'
import type { AgentMetrics } from '../../../src/agent/metrics.ts'
import { createReportWriter } from '../../../src/agent/report.ts'
import { AgentError } from '../../../src/api/agent-errors.ts'
import { operatorElection } from '../../../src/api/election.ts'
import { type NodeReport, nodeReports, parseReport, type SlotReport } from '../../../src/api/node-report.ts'
import type { SlotKey } from '../../../src/api/slot-key.ts'
import { groupSelector, parseSlotLease } from '../../../src/api/slot-lease.ts'
import { tokenDigest } from '../../../src/backuppodset/wake/token.ts'
import { slotName } from '../../../src/checkpoint/manifest.ts'
import type { Api } from '../../../src/kube/api-types.ts'
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
import { originFault } from '../../../src/succession/origin.ts'
import { type Clones, createModelDriver } from './driver.ts'
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
  ...{ refusedAtGate: nothing, failed: nothing, duties: nothing },
}

const startMs = 1_000
const recallMs = 2_000
const canaryMs = 2_000
const pullMs = 40

export async function runModelAgent(options: AgentOptions): Promise<void> {
  const { machine, volatile, party, api, time, random, signal } = options
  const clock = time.clockOf(party)
  // An agent does not know its copies before it has looked; until then the report keeps the previous agent's content.
  const node: { slots: readonly SlotReport[] | undefined; able: boolean } = { slots: undefined, able: false }
  const report = createReportWriter({ api, node: machine.name, clock, log })
  const publish = () =>
    report.update({
      ...{ version: '1', address: machine.address, fingerprint: machine.fingerprint, kernel: '6', criu: '4' },
      ...{ architecture: 'x86_64', cpuFeatures: [] },
      checks: [{ name: 'canary', ok: node.able, message: '' }],
      ready: node.able,
      slots: node.slots,
    })
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
      ...{ resource: nodeReports, store: stores.reports },
      transform: parseReport,
    }),
  ]
  publish()
  const running = [...reflectors.map(reflector => reflector.run(signal)), report.run(signal)]
  await Promise.all(reflectors.map(reflector => reflector.synced(signal)))

  // Time to install programs, connect to the sentinel, and read the copies on this node.
  await clock.sleep(random.next() * startMs, signal)
  const store = createMemoryStore(volatile.shelf, clock, options.nextName)
  const sentinel = createModelSentinel(machine, time, clock, options.kubelet)
  const generations = createKeyedSignal()
  const requests = createKeyedSignal()
  const changed = () => engine.changed()
  const driver = createModelDriver({
    ...{ machine, time, clock, random, clones: volatile.clones },
    ended: (pod, _, app) => options.discarded(pod, app),
    thawed: (pod, clone) => options.thawed(pod, clone),
  })
  const lazyPages = createLazyPages({
    ...{ driver, store, clock, log },
    metrics: { arrived: () => undefined },
    onLost: (uid, container) => {
      const pod = engine.podOf(uid)
      if (pod !== undefined && engine.matters(pod)) void deaths.declare(pod, container, lostPagesWhat)
    },
  })
  const understudies = createUnderstudies(driver, changed, lazyPages.note)
  const progress = createProgress(changed)
  const handoverPauses = createHandoverPauses(clock)
  const paces = createPaces()
  const suspensions = new Map<string, () => () => void>()
  const patch = (pod: PodView, condition: PodCondition, given?: AbortSignal) =>
    patchCondition({ api, clock }, pod, condition, given)
  const takeAway = (name: string) => void dropWatch(sentinel, name, signal).catch(() => undefined)
  const deaths = createDeaths({
    podOf: uid => engine.podOf(uid),
    slotOf: pod => engine.slotOf(pod),
    holds: pod => engine.slotHeldBy(pod.uid) !== undefined,
    matters: pod => engine.matters(pod),
    patch,
    unwatch: takeAway,
    release: uid => void release(sentinel, uid, signal).catch(() => undefined),
    changed,
    lostPages: lazyPages.wasLost,
    ...{ clock, log },
  })
  const leaseOf = ({ namespace, name }: SlotKey) => {
    const lease = stores.leases.get(`${namespace}/${name}`)
    return lease && parseSlotLease(lease)
  }
  const restorableKinds = {
    kinds: machine.proven,
    add: async (kind: string) => {
      machine.proven.add(kind)
      changed()
    },
  }
  const work: TaskContext = {
    node: machine.name,
    driver,
    sentinel,
    inquiry: createInquiry({ api, node: machine.name, election: operatorElection, clock }),
    store,
    peers: {
      async pull(slot, peer, epoch, given) {
        for (;;) {
          await clock.sleep(pullMs + random.next() * 40, given)
          const there = options.reach(peer.address)
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
      },
    },
    understudies,
    lazyPages,
    inheritedConnections: { begin: () => undefined },
    gates: {
      async tell({ uid }, containerId, line) {
        await clock.sleep(1)
        return openGate(machine, options.kubelet(), uid, containerId, line.split(' ')[2] ?? '')
      },
      refused: async () => 0,
    },
    restorableKinds,
    progress,
    handoverPauses,
    paces,
    deaths,
    patch: async (pod, condition, given) =>
      deaths.mayWrite(pod.uid, condition) ? patch(pod, condition, given) : true,
    podOf: uid => engine.podOf(uid),
    isKeptElsewhere: (lease, generation) => isKeptElsewhere(engine.snapshot, lease, generation),
    slotHeldBy: uid => engine.slotHeldBy(uid),
    isToEnd: uid => engine.isToEnd(uid),
    matters: pod => engine.matters(pod),
    policyOf: slot => engine.policyOf(slot),
    generations,
    requests,
    announce: slot => {
      generations.tell(slotName(slot))
      volatile.news.tell(slotName(slot))
      changed()
    },
    suspendProbes: uid => suspensions.get(uid)?.() ?? (() => undefined),
    onProber: (uid, suspend) => {
      if (suspend === undefined) suspensions.delete(uid)
      else suspensions.set(uid, suspend)
    },
    measureVolumes: async () => 0,
    draftBytes: async () => ({ archived: 0, written: 0 }),
    probe: async (_, { address }, { signal: given }) => {
      await clock.sleep(1, given)
      const pod = [...machine.pods.values()].find(({ ip, killed }) => ip === address && !killed)
      const container = pod?.containers.find(({ name, up }) => name === 'app' && up)
      const app = container?.app
      if (app !== undefined && answers(app, time.now())) return { outcome: 'success' }
      if (pod !== undefined && app?.exitsMs !== undefined)
        time.after(machine.kernel, app.exitsMs, () => options.exits(pod, app))
      return { outcome: 'failure', message: 'no answer' }
    },
    runCommand: async () => ({ outcome: 'success' }),
    obstacles: async () => [],
    event: () => undefined,
    metrics,
    clock,
    log,
  }
  const observe = createObserver({
    node: machine.name,
    ...stores,
    store,
    understudies,
    proven: machine.proven,
    dead: deaths.dead,
    handoverPauses,
  })
  const engine = createEngine({
    observe: () => observe({ able: node.able, sentinel: String(machine.boot) }),
    perform: (...about) => perform(work, ...about),
    deaths,
    store,
    progress,
    paces,
    report: slots => {
      node.slots = slots
      publish()
    },
    patch,
    onGone: (uid, given) => endGone(work, uid, given),
    onRequest: requests.tell,
    onTrouble: () => undefined,
    leases: stores.leases.list,
    sweepPods: async () => undefined,
    metrics,
    ...{ clock, random, log },
    defer: run => time.after(party, 0, run),
  })
  for (const each of Object.values(stores)) each.subscribe(changed)
  deaths.recall(await sentinel.watches(signal))
  machine.listener = watch => time.after(party, 0, () => engine.onDeath(deathOf(time, watch)))
  for (const watch of machine.watches.values()) if (watch.diedAt !== undefined) machine.listener(watch)
  engine.begin(signal)
  // Time to restore the state that outlived the boot from the disk; deaths are reported meanwhile.
  await clock.sleep(random.next() * recallMs, signal)
  time.after(party, canaryMs + random.next() * 3_000, () => {
    node.able = true
    publish()
    changed()
  })
  await Promise.all([engine.run(signal), ...running])
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
