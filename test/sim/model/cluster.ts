/**
 * A whole cluster: machines, agents, operators, and the relevant parts of Kubernetes' own controllers.
 *
 * Long because every process of the cluster starts and ends here, with the state that outlives it.
 */
import type { VotingNews } from '../../../src/agent/sentinel/client.ts'
import { type BackupPodSet, backupPodSets } from '../../../src/api/backuppodset.ts'
import { labels } from '../../../src/api/labels.ts'
import { migratingPods } from '../../../src/api/migrating-pod.ts'
import { migrations } from '../../../src/api/migration.ts'
import type { SlotKey } from '../../../src/api/slot-key.ts'
import { ownerReference } from '../../../src/kube/owner.ts'
import { seededRandom } from '../../../src/kube/random.ts'
import {
  controllerRevisions,
  endpointSlices,
  leases,
  type Pod,
  pods,
  services,
} from '../../../src/kube/resources.ts'
import type { Objects } from '../../../src/kube/testing/api-server.ts'
import type { WakeReply, WakeRequest } from '../../../src/slot/gate/wake.ts'
import { openGate, runModelAgent } from './agent.ts'
import type { Listening, Volatile } from './agent-options.ts'
import { createHeartbeats, type Heartbeats } from './fence/heartbeats.ts'
import { createVoting } from './fence/voting.ts'
import { createShelfNews } from './generations.ts'
import { type Kubelet, rfc3339, startKubelet } from './kubelet.ts'
import { createLink, type Link } from './network.ts'
import { createNode, mayRun } from './nodes.ts'
import { runModelOperator } from './operator.ts'
import type { Platform } from './platform.ts'
import { letLost, noticeDeath, probedMs } from './sentinel.ts'
import type { Party, VirtualTime } from './virtual-time.ts'
import {
  type App,
  type Container,
  createMachine,
  halt,
  type Machine,
  memoryNow,
  type PodOnNode,
  reaches,
} from './world.ts'

/** One process of an agent or of an operator. */
interface Process {
  readonly party: Party
  readonly link: Link
  readonly stop: AbortController
  readonly over: Promise<void>
}

export interface ModelNode {
  readonly machine: Machine
  readonly link: Link
  volatile: Volatile
  kubelet: Kubelet | undefined
  agent: Process | undefined
  listening: Listening | undefined
  boot: AbortController
}

/** A thaw, as the invariants examine it. */
export interface Thawed {
  readonly at: number
  readonly node: string
  readonly pod: PodOnNode
  readonly slot: SlotKey
  readonly epoch: number
  readonly generation: number
}

export interface Cluster {
  readonly time: VirtualTime
  /** The party of Kubernetes' own controllers and of the round itself. */
  readonly master: Party
  readonly server: Objects
  readonly nodes: readonly ModelNode[]
  readonly operators: (Process | undefined)[]
  readonly thaws: Thawed[]
  /** Unexpected errors of processes. */
  readonly failures: unknown[]
  /** Slots by the app that was started fresh for them: `namespace/set/slot`. */
  readonly slotOfGenesis: Map<string, string>
  startOperator(index: number): void
  /** `stop` sends SIGTERM, `kill` ends it at once. */
  endOperator(index: number, how: 'stop' | 'kill'): void
  startAgent(node: ModelNode): void
  endAgent(node: ModelNode, how: 'stop' | 'kill'): void
  /** Pauses the machine with all its processes until `wake`. Its clocks run meanwhile. */
  sleep(node: ModelNode): void
  wake(node: ModelNode): void
  powerOff(node: ModelNode): void
  powerOn(node: ModelNode): void
  killApp(uid: string, container: string): void
  /** `isNumbered`: it belongs to a MigratingPod. */
  createSet(spec: object, isNumbered?: boolean): void
  /** Pods that were deleted by others than the operator. */
  readonly wantedGone: Set<string>
  readonly heartbeats: Heartbeats
  /** Called for each news of a sentinel about primaries and votes. */
  readonly voted: ((machine: Machine, news: VotingNews) => void)[]
  /** Called when a pod with memory begins to run, or runs again after it was stopped. */
  readonly resumed: (() => void)[]
  /** Nothing reaches the API server, and its controllers do nothing. */
  isApiAway: boolean
  /** True time, ms, until which the garbage collector does nothing. */
  collectsFrom: number
  end(): Promise<void>
}

export interface ClusterOptions {
  readonly seed: number
  readonly nodes: number
  /** UDP port of the sentinels; undefined: none of them votes. */
  readonly heartbeatPort: number | undefined
  /** There are Node objects, and the operator carries out Migrations and drains. */
  readonly moves: boolean
}

const wakeKeys = [new Uint8Array(32).fill(7)] as const
export const setRef = { namespace: 'default', name: 'web' }
/** Kubernetes' timings, shortened: they only have to be longer than every operation of a healthy cluster. */
export const nodeGraceMs = 12_000
const evictionMs = 25_000
const collectMs = 3_000

export function createCluster(
  { time, server, apiOf, traceOf }: Platform,
  { seed, nodes: nodeCount, heartbeatPort, moves }: ClusterOptions,
): Cluster {
  const random = seededRandom(seed)
  const master = time.createParty('control-plane')
  const failures: unknown[] = []
  const thaws: Thawed[] = []
  const slotOfGenesis = new Map<string, string>()
  let names = 0
  let addresses = 0
  let geneses = 0
  const nextName = () => {
    names += 1
    return `d${names}`
  }
  const nextAddress = () => {
    addresses += 1
    return `10.0.${addresses >> 8}.${addresses & 255}`
  }

  const genesisOf = ({ metadata }: Pod) => {
    geneses += 1
    const genesis = `g${geneses}`
    slotOfGenesis.set(
      genesis,
      `${metadata.namespace}/${metadata.labels?.[labels.set]}/${metadata.labels?.[labels.slot] ?? '-'}`,
    )
    return genesis
  }
  const died = ({ machine, kubelet }: ModelNode, pod: PodOnNode, container: Container) =>
    noticeDeath(machine, time, pod, container, (of, sibling) => kubelet?.endContainer(of, sibling, 'itself'))

  const nodes = Array.from({ length: nodeCount }, (_, index): ModelNode => {
    const kernel = time.createParty(`node-${index}`)
    return {
      machine: createMachine(`n${index}`, index, kernel),
      link: createLink(),
      volatile: { shelf: new Map(), clones: new Map(), news: createShelfNews(), grants: new Map() },
      kubelet: undefined,
      agent: undefined,
      listening: undefined,
      boot: new AbortController(),
    }
  })

  const voted: Cluster['voted'] = []
  const resumed: Cluster['resumed'] = []
  const heartbeats = createHeartbeats({
    machines: nodes.map(({ machine }) => machine),
    ...{ time, party: master },
    // The rest of a round does not depend on how many beats there are.
    random: seededRandom(seed + 1),
    onNews: (machine, news) => {
      for (const listener of voted) listener(machine, news)
    },
    onFreeze: (machine, isFrozen) => {
      // The kubelet probes, and notices after a while which apps answer.
      time.after(machine.kernel, probedMs, () =>
        nodes.find(each => each.machine === machine)?.kubelet?.look(),
      )
      if (!isFrozen) for (const listener of resumed) listener()
    },
  })

  const boot = (node: ModelNode) => {
    const { machine, link } = node
    node.boot = new AbortController()
    const signal = node.boot.signal
    const api = apiOf({ party: machine.kernel, link, random })
    node.kubelet = startKubelet({
      ...{ machine, api, time, random, signal, genesisOf },
      ipOf: nextAddress,
      onDeath: (pod, container) => died(node, pod, container),
    })
  }

  /** All processes that were ever started, dead or not. */
  const launched: Process[] = []
  const launch = (
    name: string,
    link: Link,
    run: (party: Party, signal: AbortSignal) => Promise<void>,
  ): Process => {
    const party = time.createParty(name)
    const stop = new AbortController()
    const over = run(party, stop.signal).catch((error: unknown) => {
      if (!stop.signal.aborted && party.alive) failures.push(error)
    })
    const process = { party, link, stop, over }
    launched.push(process)
    return process
  }
  const endProcess = (process: Process, how: 'stop' | 'kill') => {
    if (how === 'kill') process.party.alive = false
    else {
      process.stop.abort(new Error('SIGTERM'))
      // A process that has not ended by then is killed.
      time.after(process.party, 15_000, () => {
        process.party.alive = false
      })
    }
  }

  const isAway = ({ partitioned, kernel }: Machine) => partitioned || kernel.paused
  const wake = async ({ host, token, timeoutMs, signal }: WakeRequest, party: Party): Promise<WakeReply> => {
    const clock = time.clockOf(party)
    await clock.sleep(2, signal)
    const node = nodes.find(
      ({ machine }) => machine.up && [...machine.pods.values()].some(({ ip }) => ip === host),
    )
    const pod = node && [...node.machine.pods.values()].find(({ ip }) => ip === host)
    if (node?.kubelet === undefined || pod === undefined || isAway(node.machine)) {
      await clock.sleep(timeoutMs, signal)
      return { type: 'timeout', detail: 'no reply' }
    }
    const verdict = openGate(node.machine, node.kubelet, pod.uid, '', token)
    if (verdict === 'woken' || verdict === 'already') return { type: verdict, atNs: 1n }
    return { type: verdict === 'denied' ? 'denied' : 'refused', detail: verdict }
  }

  const cluster: Cluster = {
    ...{ time, master, server, nodes, thaws, failures, slotOfGenesis, heartbeats, voted, resumed },
    isApiAway: false,
    operators: [undefined, undefined],
    wantedGone: new Set(),
    collectsFrom: 0,
    startOperator(index) {
      if (cluster.operators[index] !== undefined) return
      const link = createLink()
      link.cut = cluster.isApiAway
      names += 1
      cluster.operators[index] = launch(`operator-${index}-${names}`, link, (party, signal) =>
        runModelOperator({
          ...{ party, time, random, wakeKeys, moves, signal },
          api: apiOf({ party, link, random }),
          wake: request => wake(request, party),
          ...(traceOf && { trace: traceOf('operator') }),
        }),
      )
    },
    endOperator(index, how) {
      const operator = cluster.operators[index]
      if (operator !== undefined) endProcess(operator, how)
      cluster.operators[index] = undefined
    },
    startAgent(node) {
      if (node.agent !== undefined || !node.machine.up) return
      const { machine, link } = node
      names += 1
      node.agent = launch(`agent-${machine.name}-${names}`, link, (party, signal) => {
        party.wallOffsetMs = machine.kernel.wallOffsetMs
        return runModelAgent({
          ...{ machine, party, time, random, nextName, signal },
          ...{ beats: heartbeats, heartbeatPort },
          volatile: node.volatile,
          api: apiOf({ party, link, random }),
          ...(traceOf && { trace: traceOf(`agent of ${machine.name}`) }),
          kubelet: () => {
            if (node.kubelet === undefined) throw new Error('no kubelet')
            return node.kubelet
          },
          reach: address => {
            const there = nodes.find(each => each.machine.address === address)
            if (there === undefined || !there.machine.up) return undefined
            const answers =
              there.agent?.party.alive === true &&
              !there.agent.party.paused &&
              reaches(machine, there.machine) &&
              reaches(there.machine, machine)
            const { shelf, news } = there.volatile
            return { machine: there.machine, shelf, news, answers, agent: there.listening }
          },
          listens: agree => {
            node.listening = { party, agree }
          },
          thawed: (pod, { slot, epoch: ofEpoch, generation }) => {
            thaws.push({ at: time.now(), node: machine.name, pod, slot, epoch: ofEpoch, generation })
            for (const listener of resumed) listener()
          },
          exits: (pod, app) => {
            const container = pod.containers.find(each => each.app === app)
            if (container !== undefined) cluster.killApp(pod.uid, container.name)
          },
          // The sentinel notices the end of an app below `hold`; `hold` itself stays.
          discarded: (pod, app: App) => {
            const container = pod.containers.find(({ holds, up }) => holds && up)
            if (!halt(pod, app, time.now()) || container === undefined) return
            const { genesis } = app.memory
            machine.endings.push({ at: time.now(), uid: pod.uid, genesis, by: 'agent' })
            died(node, pod, container)
          },
        })
      })
      node.agent.party.paused = machine.kernel.paused
    },
    endAgent(node, how) {
      if (node.agent === undefined) return
      const { machine, agent } = node
      node.listening = undefined
      machine.listener = undefined
      machine.voting.listeners.clear()
      endProcess(agent, how)
      // The sentinel's connection ends with the agent.
      if (how === 'kill') letLost(machine, time)
      else void agent.over.then(() => letLost(machine, time))
      node.agent = undefined
    },
    sleep(node) {
      const { machine, agent } = node
      if (!machine.up || machine.asleep !== undefined) return
      const apps = [...machine.pods.values()].flatMap(({ containers }) =>
        containers.flatMap(({ up, app }) => (up && app?.runsSince !== undefined ? [app] : [])),
      )
      for (const app of apps) {
        app.memory = memoryNow(app, time.now())
        app.runsSince = undefined
      }
      machine.asleep = apps
      machine.kernel.paused = true
      if (agent !== undefined) agent.party.paused = true
      heartbeats.changed()
    },
    wake(node) {
      const { machine, agent } = node
      if (machine.asleep === undefined) return
      for (const app of machine.asleep) app.runsSince = time.now()
      machine.asleep = undefined
      time.resume(machine.kernel)
      if (agent !== undefined) time.resume(agent.party)
      heartbeats.changed()
      for (const listener of resumed) listener()
      // The kubelet probes.
      time.after(machine.kernel, 2 * probedMs, () => node.kubelet?.look())
    },
    powerOff(node) {
      const { machine } = node
      if (!machine.up) return
      cluster.endAgent(node, 'kill')
      machine.up = false
      machine.kernel.alive = false
      node.boot.abort()
      node.kubelet = undefined
      machine.pods.clear()
      machine.watches.clear()
      machine.stops.clear()
      machine.images.clear()
      machine.proven.clear()
      machine.asleep = undefined
      heartbeats.changed()
      node.volatile = { shelf: new Map(), clones: new Map(), news: createShelfNews(), grants: new Map() }
    },
    powerOn(node) {
      const { machine } = node
      if (machine.up) return
      machine.up = true
      machine.boot += 1
      const { wallOffsetMs } = machine.kernel
      machine.kernel = time.createParty(`${machine.name}-${machine.boot}`)
      machine.kernel.wallOffsetMs = wallOffsetMs
      machine.voting = createVoting(machine.name, machine.boot)
      boot(node)
      time.after(machine.kernel, 3_000, () => cluster.startAgent(node))
    },
    killApp(uid, name) {
      for (const { machine, kubelet } of nodes) {
        const pod = machine.pods.get(uid)
        const container = pod?.containers.find(each => each.name === name)
        if (pod === undefined || container?.app?.runsSince === undefined) continue
        // A sidecar has no memory in the clone, which stays.
        if (container.holds) volatileOf(machine).clones.delete(uid)
        kubelet?.endContainer(pod, container, 'itself')
      }
    },
    createSet(spec, isNumbered = false) {
      server.create(
        backupPodSets,
        {
          apiVersion: 'backup.example.com/v1alpha1',
          kind: 'BackupPodSet',
          metadata: {
            name: setRef.name,
            ...(isNumbered && {
              ownerReferences: [ownerReference(migratingPods, { ...setRef, uid: 'roaming' })],
            }),
          },
          spec,
        },
        setRef.namespace,
      )
    },
    async end() {
      for (const [index] of cluster.operators.entries()) cluster.endOperator(index, 'kill')
      for (const node of nodes) {
        cluster.endAgent(node, 'kill')
        node.boot.abort()
      }
      master.alive = false
      // A killed process leaves its waits behind. Node retains every listener of a signal from `AbortSignal.any`, and
      // with it the whole cluster, until that signal is aborted.
      for (const { party, stop } of launched) {
        party.alive = false
        stop.abort('over')
      }
      await new Promise(resolve => setImmediate(resolve))
    },
  }
  const volatileOf = (machine: Machine): Volatile => {
    const node = nodes.find(each => each.machine === machine)
    if (node === undefined) throw new Error(machine.name)
    return node.volatile
  }

  if (moves) for (const { machine } of nodes) createNode(server, machine)
  for (const node of nodes) {
    boot(node)
    cluster.startAgent(node)
  }

  // Scheduler: chooses the machine with the fewest pods of the set that is up as far as it knows and not excluded by
  // name.
  const lastSeen = new Map<string, number>()
  const silentSince = (node: ModelNode) => {
    const isHeard = node.machine.up && !node.link.cut && !node.machine.kernel.paused
    if (isHeard) lastSeen.set(node.machine.name, time.now())
    return time.now() - (lastSeen.get(node.machine.name) ?? 0)
  }
  const lost = (node: ModelNode) => silentSince(node) > nodeGraceMs
  const beat = () => {
    // A server that was away has heard nothing.
    if (cluster.isApiAway) for (const { machine } of nodes) lastSeen.set(machine.name, time.now())
    else control()
    time.after(master, 200, beat)
  }
  const control = () => {
    const all = server.list(pods)
    for (const pod of all) {
      const spec = pod.spec
      if (spec === undefined || spec.nodeName !== undefined || pod.metadata.deletionTimestamp !== undefined)
        continue
      const fit = nodes.filter(node => !lost(node) && mayRun(server, spec, node.machine.name))
      const load = (node: ModelNode) => {
        const there = all.filter(each => each.spec?.nodeName === node.machine.name)
        const type = pod.metadata.labels?.[labels.type] === 'primary'
        const alike = there.filter(each => (each.metadata.labels?.[labels.type] === 'primary') !== type)
        return there.length + 2 * alike.length
      }
      const best = fit.toSorted((a, b) => load(a) - load(b))[0]
      if (best === undefined) continue
      server.bind(pod.metadata, best.machine.name)
      break
    }
    for (const node of nodes) {
      if (!lost(node)) continue
      for (const pod of all.filter(each => each.spec?.nodeName === node.machine.name)) {
        const ready = pod.status?.conditions?.find(({ type }) => type === 'Ready')
        if (ready !== undefined && ready.status !== 'False') {
          const conditions = [
            { type: 'Ready', status: 'False', lastTransitionTime: rfc3339(time.epoch + time.now()) },
          ]
          server.patch(pods, pod.metadata, 'strategic', { status: { conditions } }, 'status')
        }
        if (silentSince(node) > nodeGraceMs + evictionMs && pod.metadata.deletionTimestamp === undefined) {
          cluster.wantedGone.add(pod.metadata.uid)
          server.delete(pods, pod.metadata, { uid: pod.metadata.uid }, undefined)
        }
      }
    }
  }
  time.after(master, 200, beat)

  // Garbage collector: some time later it deletes objects whose owner is gone.
  const collect = () => {
    time.after(master, collectMs, collect)
    if (time.now() < cluster.collectsFrom) return
    const live = new Set(server.list(backupPodSets).map(({ metadata }) => metadata.uid))
    for (const resource of [pods, leases, services, endpointSlices, controllerRevisions, migrations]) {
      for (const object of server.list<BackupPodSet>(resource as never)) {
        const owner = object.metadata.ownerReferences?.find(({ kind }) => kind === 'BackupPodSet')
        if (owner === undefined || live.has(owner.uid) || object.metadata.deletionTimestamp !== undefined)
          continue
        cluster.wantedGone.add(object.metadata.uid)
        server.delete(resource, object.metadata, { uid: object.metadata.uid }, undefined)
      }
    }
  }
  time.after(master, collectMs, collect)
  return cluster
}
