/** The agent's work on its node: prepares the node, gives it to the core, and runs until the signal fires. */
import { availableParallelism } from 'node:os'
import { join } from 'node:path'
import { operatorElection } from '../api/election.ts'
import type { Budget } from '../api/node-report.ts'
import { type SlotLease, slotAnnotations } from '../api/slot-lease.ts'
import { createSigner } from '../checkpoint/signature.ts'
import { systemClock as clock } from '../kube/clock.ts'
import { referenceTo } from '../kube/event-record.ts'
import { systemRandom as random } from '../kube/random.ts'
import { pods as podResource } from '../kube/resources.ts'
import { createGates } from './container/gates.ts'
import { createCommandRunner } from './container/hold-command.ts'
import { hostProcFs as fs } from './container/process.ts'
import { type Core, createCore, type Platform } from './core.ts'
import { sizeOfMemory } from './criu/memory-size.ts'
import { sizeOfVolumes } from './criu/volumes-size.ts'
import { createForgottenConnections, forgetConnections } from './forgotten-connections.ts'
import { listen } from './listen.ts'
import { enterNode, type Node } from './node.ts'
import { createInquiry } from './observe/inquiry.ts'
import { movingSlots } from './observe/moving.ts'
import type { Snapshot } from './observe/snapshot.ts'
import { openPeers, type Peers } from './open-peers.ts'
import type { AgentOptions } from './options.ts'
import { findObstacles } from './preflight/obstacles/find.ts'
import { lazyRestore } from './preflight/preflight.ts'
import { askForAnswer } from './report/api-answer.ts'
import { patchCondition } from './report/conditions.ts'
import { type AgentMetrics, createAgentMetrics } from './report/metrics.ts'
import { writeMissingRecords } from './report/missing-records.ts'
import type { Resources } from './resources.ts'
import { openGrantFiles } from './state/grant-files.ts'
import { loadRestorableKinds } from './state/restorable-kinds.ts'
import { createAgentsHalf } from './storage/agents-half.ts'
import { createDiskKeeper, type DiskKeeper } from './storage/keeper.ts'
import { createKeyParts, type KeyPartsReader } from './storage/key-parts.ts'
import { createBudgetMetrics } from './storage/metrics.ts'
import { createInheritedConnections, createSever } from './tasks/inherited-connections.ts'
import type { NodeCapabilities } from './tasks/task-context.ts'
import { areAllOf } from './transfer/agents-version.ts'
import { createSaveTurns } from './transfer/turns.ts'
import { prove, watchSentinel } from './watch-node.ts'

/** Parts that exist only once the node has been entered. */
interface Late {
  keeper?: DiskKeeper | undefined
  notLazy?: () => void
  core?: Core
}

/** How long the agent waits for generations on the disk before it listens for deaths, ms; the rest is loaded later. */
const recallMs = 20_000
/** How long it waits for the key of these generations first, ms. */
const arrivalMs = 5_000

/**
 * Works until the signal fires. Clones in pods, watches and redirects stay as they are then.
 *
 * @throws Error if the port for peers is in use; the signal's reason.
 */
export async function workOnNode(resources: Resources, signal: AbortSignal): Promise<void> {
  const { caches, status } = resources
  const late: Late = {}
  const [entered] = await Promise.all([
    enter(resources, late, signal),
    ...Object.values(caches.reflectors).map(reflector => reflector.synced(signal)),
  ])
  const { options, log } = resources
  await forgetConnections(createForgottenConnections(options.runDirectory), options, log)
  status.machine = entered.machine
  status.diskKey = entered.diskKey?.publicKey ?? null
  status.publish()
  const state = { able: false, sentinel: await entered.ensureSentinel(signal) }
  const metrics = createAgentMetrics(resources.metrics.registry)
  late.notLazy = metrics.notLazy
  tellBudgets(resources, entered, late)
  const peers = await openPeers(resources, entered, metrics, {
    agree: (node, request) => late.core?.agree(node, request),
    stored: slot => late.core?.announce(slot),
  })
  const tools = await toolsOf(resources, entered, { peers, metrics, late }, signal)
  const core = createCore(platformOf(resources, entered, { tools, state, peers, late }), signal)
  late.core = core
  const parts = keyPartsOf(resources, entered)
  late.keeper = keeperOf(resources, entered, core, parts)
  await run(resources, entered, { core, state, peers, late, parts }, signal)
}

function enter(
  { options, version, caches, status, log }: Resources,
  late: Late,
  signal: AbortSignal,
): Promise<Node> {
  return enterNode(
    {
      ...{ options, clock, random, log },
      async relieve(bytes, namespace) {
        await late.core?.makeWay()
        await late.keeper?.relieve(bytes, namespace)
      },
      digestByPage: () => areAllOf(version, caches.stores.reports.list()),
      onNotLazy(problem) {
        late.notLazy?.()
        status.checks = status.checks.map(check =>
          check.name === 'lazy-restore' ? lazyRestore(problem) : check,
        )
        status.publish()
      },
      onChecks(checks) {
        status.checks = checks
        status.publish()
      },
    },
    signal,
  )
}

function tellBudgets({ metrics, status }: Resources, { store, disk }: Node, late: Late): void {
  createBudgetMetrics(metrics.registry, store, disk, () => late.keeper)
  const budgetOf = ({ bytes, budget }: Budget): Budget => ({ bytes, budget })
  status.budgets = () => ({
    memory: budgetOf(store),
    ...(disk && { disk: { ...budgetOf(disk), ...late.keeper?.trouble } }),
  })
}

async function toolsOf(
  { options, caches, identity, heartbeatKey, recorder, traces, api, urgentApi, precedence, log }: Resources,
  { driver, sentinel, store, programs, volatile }: Node,
  { peers, metrics, late }: { peers: Peers; metrics: AgentMetrics; late: Late },
  signal: AbortSignal,
): Promise<NodeCapabilities> {
  const election = { ...operatorElection, namespace: options.operatorNamespace }
  const about = { node: options.node, election, clock }
  const inquiry = createInquiry({ api: urgentApi, ...about })
  const sever = createSever(programs.directory)
  return {
    unhurried: createInquiry({ api, ...about }),
    ...{ node: options.node, driver, sentinel, inquiry, store },
    ...{ peers: peers.client, go: peers.client.go, reach: peers.client.reach },
    sign: createSigner(identity.key),
    during: precedence.during,
    heartbeatKey: heartbeatKey.with,
    inheritedConnections: createInheritedConnections({ inquiry, sever, clock, log, signal }),
    gates: createGates({ fs, clock }),
    grantFiles: await openGrantFiles(join(volatile, 'grants')),
    restorableKinds: await loadRestorableKinds(join(volatile, 'proven'), programs.digest, log),
    measureMemory: (pod, signal) => sizeOfMemory(fs, pod, signal),
    measureVolumes: (pod, upTo, signal) => sizeOfVolumes(fs, pod, upTo, signal),
    fromDisk: (lease, signal) => late.keeper?.others(lease, signal) ?? nothing(),
    event(pod, type, reason, action, note) {
      const object = caches.stores.pods.get(`${pod.namespace}/${pod.name}`)
      if (object === undefined) return
      recorder.record({ regarding: referenceTo(podResource, object), type, reason, action, note })
    },
    runCommand: createCommandRunner({ fs, clock }),
    ...(traces && { trace: traces.sink }),
    saves: createSaveTurns(availableParallelism()),
    obstacles: (pod, signal) => findObstacles(pod, { fs, programs: programs.directory, signal }),
    ...{ metrics, clock, log },
  }
}

/** Stands in for a missing disk. */
async function* nothing(): AsyncGenerator<never> {}

function platformOf(
  { options, caches, status, urgentApi, precedence, log }: Resources,
  { machine, records, tidy }: Node,
  { peers, late, ...given }: Pick<Platform, 'tools' | 'state'> & { peers: Peers; late: Late },
): Platform {
  return {
    ...{ ...given, machine, stores: caches.stores, random },
    patch: (pod, condition, signal) =>
      precedence.during(patchCondition({ api: urgentApi, clock }, pod, condition, signal)),
    report(slots, run) {
      status.slots = slots
      status.run = run
      status.publish()
    },
    askApi: (timeoutMs, signal) =>
      askForAnswer(
        { api: urgentApi, node: options.node, clock, nowNs: process.hrtime.bigint },
        timeoutMs,
        signal,
      ),
    announced(slot) {
      peers.server.announce(slot)
      late.keeper?.noted()
    },
    onDisk: slot => late.keeper?.onDisk(slot),
    diskRefusal: slot => late.keeper?.refusalOf(slot),
    isRead: slot => late.keeper?.isRead(slot) ?? true,
    async sweepPods(live) {
      for (const uid of await records.list()) if (!live.has(uid)) await records.remove(uid)
      await tidy().catch((error: unknown) => log.warn({ err: error }, 'cannot tidy up'))
    },
  }
}

function keyPartsOf({ options, caches, api }: Resources, { diskKey }: Node): KeyPartsReader | undefined {
  if (diskKey === undefined) return undefined
  const { node } = options
  return createKeyParts({
    ...{ agentsHalf: createAgentsHalf(api, options.namespace, clock), diskKey, node, clock },
    report: () => caches.stores.reports.get(node),
  })
}

function keeperOf(
  { options, caches, log }: Resources,
  { disk, store }: Node,
  core: Core,
  parts: KeyPartsReader | undefined,
): DiskKeeper | undefined {
  if (disk === undefined || parts === undefined) return undefined
  return createDiskKeeper({
    ...{ disk, store, node: options.node, keyParts: parts.read, clock, log },
    slots: () => slotsOnDisk(caches, options, core.observe()),
    moving: () => movingSlots(core.observe(), clock.now()),
    everyMs: options.diskInterval * 1000,
    onRecalled: ({ manifest: { slot } }) => core.announce(slot),
    changed: core.changed,
  })
}

/**
 * Slots whose memory may be on disks; undefined: a Lease names no incarnation, so not all slots are known.
 */
function slotsOnDisk(
  { stores }: Resources['caches'],
  { node: here }: Pick<AgentOptions, 'node'>,
  { slots }: Snapshot,
): readonly SlotLease[] | undefined {
  if (
    stores.leases
      .list()
      .some(lease => lease.metadata.annotations?.[slotAnnotations.incarnation] === undefined)
  )
    return undefined
  const isOurs = ({ node, holders }: SlotLease) => node === here || holders.includes(here)
  return slots.filter(lease => isOurs(lease) && lease.policy?.disk !== false)
}

async function run(
  resources: Resources,
  entered: Node,
  {
    core,
    state,
    peers,
    late: { keeper },
    parts: keyParts,
  }: {
    core: Core
    state: { able: boolean; sentinel: string }
    peers: Peers
    late: Late
    parts: KeyPartsReader | undefined
  },
  signal: AbortSignal,
): Promise<void> {
  const { caches, api, options, heartbeatKey: key, report, status, log } = resources
  const { sentinel } = entered
  // Takes over the watches of an earlier agent before it makes new ones; then the deaths that no agent has heard of.
  core.recall(await sentinel.watches(signal))
  sentinel.onDeath(core.onDeath)
  sentinel.onVoting(core.onVoting)
  report.onAnswer(core.answered)
  await sentinel.tellVotes(signal)
  core.begin(signal)
  const present = () => state.sentinel
  // A primary may need an answer of the API server at once, and other nodes need this node's vote.
  const hearing = Promise.all([
    sentinel.run(signal),
    listen({ sentinel, port: options.heartbeatPort, key, core, status, present, clock, log }, signal),
  ])
  // After a boot, the operator first has to encrypt the half of this node again.
  if (entered.disk?.tags().size) await keyParts?.arrival(arrivalMs, signal).catch(() => undefined)
  // Loads generations that outlived the boot, before any decision depends on the content of the tmpfs.
  await keeper
    ?.recall(AbortSignal.any([signal, AbortSignal.timeout(recallMs)]))
    .catch((error: unknown) => log.warn({ err: error }, 'some generations on the disk are not loaded yet'))
  const parts = [
    hearing,
    core.run(signal),
    keeper?.run(signal),
    writeMissingRecords({ pods: caches.stores.pods.list, api, clock, log }, signal),
    prove(resources, entered, state, core.changed, signal),
    watchSentinel(resources, entered, state, core.changed, signal),
  ]
  try {
    await Promise.all(parts)
  } finally {
    await Promise.allSettled(parts)
    await peers.close()
    sentinel.close()
  }
}
