import { networkInterfaces } from 'node:os'
import { join } from 'node:path'
import type { Logger } from 'pino'
import { operatorElection } from '../api/election.ts'
import {
  type Budget,
  type NodeCheck,
  type NodeReport,
  nodeReports,
  parseReport,
  retireRequested,
  type SlotReport,
} from '../api/node-report.ts'
import type { SlotKey } from '../api/slot-key.ts'
import { groupSelector, parseSlotLease, type SlotLease, slotAnnotations } from '../api/slot-lease.ts'
import { applyDelta, encodeDelta } from '../checkpoint/delta.ts'
import { slotName } from '../checkpoint/manifest.ts'
import { createSigner, signerOf } from '../checkpoint/signature.ts'
import { createApi } from '../kube/api.ts'
import { createBackoff } from '../kube/backoff.ts'
import { systemClock as clock } from '../kube/clock.ts'
import { loadConnection } from '../kube/connection.ts'
import {
  createHealthServer,
  createMetricsServer,
  eventLoopCheck,
  openAll,
  syncedCheck,
} from '../kube/health.ts'
import { keepWarm } from '../kube/keep-warm.ts'
import { createMetrics } from '../kube/metrics.ts'
import { systemRandom as random } from '../kube/random.ts'
import { createRecorder, referenceTo } from '../kube/recorder.ts'
import { createReflector } from '../kube/reflector.ts'
import { type Lease, leases as leaseResource, type Pod, pods as podResource } from '../kube/resources.ts'
import { createStore } from '../kube/store.ts'
import type { Machine } from '../succession/machine-fit.ts'
import { isNamed, originFault } from '../succession/origin.ts'
import { type PodCondition, patchCondition } from './conditions.ts'
import { hostProcFs } from './discover/process.ts'
import { createAgentsHalf } from './disk/agents-half.ts'
import { createDiskKeeper, type DiskKeeper } from './disk/keeper.ts'
import { createBudgetMetrics } from './disk/metrics.ts'
import { createDeaths, lostPagesWhat } from './duties/deaths.ts'
import { isKeptElsewhere } from './duties/duties-of.ts'
import type { DutyType } from './duties/duty.ts'
import { createEngine } from './duties/engine.ts'
import { createHandoverPauses } from './duties/handover-pauses.ts'
import { createInheritedConnections, createSever } from './duties/inherited-connections.ts'
import { createLazyPages } from './duties/lazy-pages.ts'
import { createObserver } from './duties/observe.ts'
import { createPaces } from './duties/paces.ts'
import { perform } from './duties/perform.ts'
import { createProgress } from './duties/progress.ts'
import { dropWatch, release } from './duties/remains.ts'
import { loadRestorableKinds } from './duties/restorable-kinds.ts'
import type { PodView, Snapshot } from './duties/snapshot.ts'
import { endGone } from './duties/stop-primary.ts'
import type { TaskContext } from './duties/task-context.ts'
import { createUnderstudies } from './duties/understudies.ts'
import { createGates } from './gates.ts'
import { collectBuffers } from './gc-flags.ts'
import { createCommandRunner } from './hold-command.ts'
import { createInquiry } from './inquiry.ts'
import { keptCheck } from './kept-check.ts'
import { createKeyedSignal } from './keyed-signal.ts'
import { thisMachine } from './machine.ts'
import { sizeOfMemory } from './memory-size.ts'
import { createAgentMetrics } from './metrics.ts'
import { writeMissingRecords } from './missing-records.ts'
import { enterNode, failedCheck, type Node, sentinelCgroup } from './node.ts'
import { findObstacles } from './obstacles/find.ts'
import type { AgentOptions } from './options.ts'
import { ownNode } from './own-node.ts'
import { createPeerClient } from './peers/client.ts'
import { loadIdentity } from './peers/identity.ts'
import { isPeerAddress, nodeBehind } from './peers/known-peers.ts'
import { createPeerServer } from './peers/server.ts'
import { lazyRestore } from './preflight.ts'
import { createReportWriter } from './report.ts'
import { retire } from './retire.ts'
import { sizeOfVolumes } from './volumes-size.ts'

const eventLoopLimitMs = 10_000
const flushMs = 2_000
/** Deaths and promotions use connections that are already open. */
const warm = { bulk: 1, urgent: 2 } as const
const recheck = { initialMs: 5_000, maxMs: 300_000, jitter: 0.2 }
/** The actions that events name for each duty. */
const actions: Readonly<Record<DutyType, string>> = {
  watchPrimary: 'Guard',
  checkpoint: 'Checkpoint',
  handOver: 'HandOver',
  replicate: 'Fetch',
  fetch: 'Fetch',
  freeze: 'Freeze',
  verifyRestore: 'Try',
  discard: 'Empty',
  promote: 'Promote',
  probe: 'Probe',
  stopPrimary: 'Stop',
  redirect: 'Redirect',
  wake: 'Wake',
  watchGate: 'Watch',
}
/** Stands in for a missing disk. */
async function* nothing(): AsyncGenerator<never> {}

/** How long the agent waits for generations on the disk before it listens for deaths, ms; the rest is loaded later. */
const recallMs = 20_000
const sentinelCheckMs = 5_000
const retiredCheckMs = 1_000
const left: NodeCheck = {
  name: 'retired',
  ok: false,
  message: 'no part of the agents is left on this node',
  cure: `remove the installation, or remove the annotation ${retireRequested} from this report`,
}
const sentinelRounds = 60

/**
 * Runs the agent of one node until the signal fires. Clones in pods, watches and redirects stay as they are then: the
 * sentinel keeps them, and the next agent takes them over.
 *
 * @throws Error if the cluster cannot be reached as configured, or a port is in use.
 */
export async function runAgent(
  options: AgentOptions,
  log: Logger,
  version: string,
  ended: AbortSignal,
): Promise<void> {
  const retiring = new AbortController()
  /** Ends all work, also when the agent has to leave the node. */
  const signal = AbortSignal.any([ended, retiring.signal])
  const onBuffer = collectBuffers()
  const metrics = createMetrics()
  const connection = await loadConnection({ kubeconfig: options.kubeconfig })
  const shared = { connection, metrics: metrics.api, userAgent: `understudy-agent/${version}`, log }
  const api = createApi({ ...shared, connections: 8 })
  const urgentApi = createApi({ ...shared, connections: warm.urgent })
  const identity = await loadIdentity(join(options.stateDirectory, 'identity'))
  const report = createReportWriter({
    api,
    node: options.node,
    owner: signal => ownNode(api, options.node, signal),
    clock,
    log,
  })

  const node: {
    checks: readonly NodeCheck[]
    /** Undefined until it is known which memory this node keeps. */
    slots: readonly SlotReport[] | undefined
    machine: Machine
    retired: boolean
    budgets: () => { readonly memory?: Budget; readonly disk?: Budget }
  } = {
    budgets: () => ({}),
    checks: [{ name: 'node', ok: false, message: 'the agent is starting', cure: 'wait for the agent' }],
    slots: undefined,
    machine: await thisMachine(''),
    retired: false,
  }
  const publish = () =>
    report.update({
      version,
      address: `${options.address}:${options.peerPort}`,
      fingerprint: identity.fingerprint,
      signs: true,
      ...node.machine,
      cpuFeatures: node.machine.cpuFeatures ?? [],
      checks: node.checks,
      ready: node.checks.length > 0 && node.checks.every(({ ok }) => ok),
      slots: node.slots,
      retired: node.retired,
      ...node.budgets(),
    })

  const stores = {
    pods: createStore<Pod>(),
    leases: createStore<Lease>(),
    reports: createStore<NodeReport>(),
  }
  const common = { api, clock, random, log, metrics: metrics.reflector }
  const reflectors = {
    // Only pods of this node that carry our label.
    pods: createReflector({
      ...common,
      resource: podResource,
      store: stores.pods,
      query: { fieldSelector: `spec.nodeName=${options.node}`, labelSelector: groupSelector },
    }),
    leases: createReflector({
      ...common,
      resource: leaseResource,
      store: stores.leases,
      query: { labelSelector: groupSelector },
    }),
    reports: createReflector({
      ...common,
      resource: nodeReports,
      store: stores.reports,
      transform: parseReport,
    }),
  }

  using eventLoop = eventLoopCheck(eventLoopLimitMs)
  const servers = await openAll([
    createHealthServer({
      port: options.healthPort,
      host: options.address,
      live: { eventloop: eventLoop },
      ready: {
        caches: syncedCheck(reflectors),
        memory: keptCheck(() => ({
          slots: node.slots,
          before: stores.reports.get(options.node)?.status?.slots,
          checks: node.checks,
          told: report.slotsTold,
        })),
      },
      clock,
      log,
    }),
    createMetricsServer({
      port: options.metricsPort,
      host: options.address,
      registry: metrics.registry,
      log,
    }),
  ])
  const background = new AbortController()
  const running = Promise.all([
    ...Object.values(reflectors).map(reflector => reflector.run(background.signal)),
    report.run(background.signal),
    keepWarm({ api, connections: warm.bulk, clock, log }, background.signal),
    keepWarm({ api: urgentApi, connections: warm.urgent, clock, log }, background.signal),
  ])
  const recorder = createRecorder({
    api,
    component: 'understudy-agent',
    instance: options.node,
    clock,
    log,
    metrics: metrics.recorder,
  })
  /**
   * Returns true if the agent has to leave this node; undefined if there is no report. A missing report is no request to
   * leave: if the kind is deleted, the report goes before this agent does.
   */
  const isToRetire = () => {
    const own = stores.reports.get(options.node)
    return own && own.metadata.annotations?.[retireRequested] !== undefined
  }
  const room: { keeper: DiskKeeper | undefined; notLazy?: () => void } = { keeper: undefined }
  try {
    try {
      publish()
      // A retired agent must not begin to put things back.
      await reflectors.reports.synced(signal)
      if (isToRetire()) retiring.abort()
      signal.throwIfAborted()
      stores.reports.subscribe(() => {
        if (isToRetire()) retiring.abort()
      })
      const [entered] = await Promise.all([
        enterNode(
          {
            options,
            clock,
            random,
            log,
            relieve: async bytes => room.keeper?.relieve(bytes),
            onNotLazy: problem => {
              room.notLazy?.()
              node.checks = node.checks.map(check =>
                check.name === 'lazy-restore' ? lazyRestore(problem) : check,
              )
              publish()
            },
            onChecks: checks => {
              node.checks = checks
              publish()
            },
          },
          signal,
        ),
        ...Object.values(reflectors).map(reflector => reflector.synced(signal)),
      ])
      node.machine = entered.machine
      await work(entered)
    } catch (error) {
      if (!signal.aborted) throw error
    }
    if (retiring.signal.aborted && !ended.aborted) await leaveNode()
  } finally {
    await recorder.flush(AbortSignal.timeout(flushMs))
    recorder.close()
    background.abort()
    await running
    await Promise.all([...servers, api, urgentApi].map(part => part.close()))
  }

  /** Removes everything from the node until the request is withdrawn; then the next agent starts from nothing. */
  async function leaveNode(): Promise<void> {
    log.warn('removing everything that agents have put on this node')
    const pauses = createBackoff(recheck, random)
    node.slots = []
    node.budgets = () => ({})
    node.checks = [
      { name: 'retired', ok: false, message: 'the agent is leaving this node', cure: 'wait for the agent' },
    ]
    publish()
    while (!ended.aborted && isToRetire() !== false) {
      try {
        if (!node.retired)
          await retire({ ...options, fs: hostProcFs, clock, random, cgroup: sentinelCgroup, signal: ended })
        node.retired = true
        node.checks = [left]
      } catch (error) {
        if (ended.aborted) return
        log.error({ err: error }, 'cannot remove everything')
        node.checks = [failedCheck('retired', error)]
      }
      publish()
      await clock.sleep(node.retired ? retiredCheckMs : pauses.next(), ended).catch(() => undefined)
    }
  }

  async function work(entered: Node): Promise<void> {
    const { sentinel, store, disk } = entered
    const state = { able: false, sentinel: await entered.ensureSentinel(signal) }
    const generations = createKeyedSignal()
    const requests = createKeyedSignal()
    const suspensions = new Map<string, () => () => void>()
    const changed = () => engine.changed()
    const agentMetrics = createAgentMetrics(metrics.registry, () => store.bytes)
    createBudgetMetrics(metrics.registry, store, disk, () => room.keeper)
    const budgetOf = ({ bytes, budget }: Budget): Budget => ({ bytes, budget })
    node.budgets = () => ({
      memory: budgetOf(store),
      ...(disk && { disk: { ...budgetOf(disk), ...room.keeper?.trouble } }),
    })

    const restorableKinds = await loadRestorableKinds(
      join(entered.volatile, 'proven'),
      entered.programs.digest,
      log,
      changed,
    )
    const lazyPages = createLazyPages({
      driver: entered.driver,
      store,
      metrics: agentMetrics,
      onLost: (uid, container, message) => {
        agentMetrics.pagesLost()
        const pod = engine.podOf(uid)
        if (pod === undefined) return
        event(pod, 'Warning', 'PagesLost', 'Promote', message)
        // The sentinel has reported the death already, if it watched the app.
        if (engine.matters(pod)) void deaths.declare(pod, container, lostPagesWhat)
      },
      clock,
      log,
    })
    room.notLazy = agentMetrics.notLazy
    const understudies = createUnderstudies(entered.driver, changed, lazyPages.note)
    const progress = createProgress(changed)
    const handoverPauses = createHandoverPauses(clock)
    const paces = createPaces()
    const patch = (pod: PodView, condition: PodCondition, signal?: AbortSignal) =>
      patchCondition({ api: urgentApi, clock }, pod, condition, signal)
    // Opens a redirect that closed when a process ended, if the process in its place is the rightful successor.
    const takeAway = (name: string) => {
      dropWatch(sentinel, name, signal).catch((error: unknown) =>
        log.warn({ err: error, name }, 'cannot remove a watch'),
      )
    }
    const releaseAll = (uid: string) => {
      release(sentinel, uid, signal).catch((error: unknown) =>
        log.warn({ err: error, uid }, 'cannot open a redirect'),
      )
    }
    const inquiry = createInquiry({
      api: urgentApi,
      node: options.node,
      election: { ...operatorElection, namespace: options.operatorNamespace },
      clock,
    })
    const event: TaskContext['event'] = (pod, type, reason, action, note) => {
      const object = stores.pods.get(`${pod.namespace}/${pod.name}`)
      if (object === undefined) return
      recorder.record({ regarding: referenceTo(podResource, object), type, reason, action, note })
    }
    const deaths = createDeaths({
      podOf: uid => engine.podOf(uid),
      slotOf: pod => engine.slotOf(pod),
      holds: pod => engine.slotHeldBy(pod.uid) !== undefined,
      matters: pod => engine.matters(pod),
      patch,
      unwatch: takeAway,
      release: releaseAll,
      changed,
      lostPages: lazyPages.wasLost,
      onDeclared: (pod, ms) => {
        if (ms !== undefined) agentMetrics.deathTold(ms / 1000)
        event(pod, 'Warning', 'Died', 'Watch', 'its app has ended, and with it the memory of the slot')
      },
      clock,
      log,
    })
    const server = await createPeerServer({
      identity,
      port: options.peerPort,
      store,
      encode: (base, next, cancel) => encodeDelta(base, next, { ...cancel, onBuffer }),
      nodeOf: (fingerprint, address) => {
        const node = nodeBehind(stores.reports.list(), { fingerprint, address })
        return node === options.node ? undefined : node
      },
      mayConnect: address => isPeerAddress(stores.reports.list(), address),
      mayRead: (reader, slot) => {
        const lease = leaseOf(slot)
        const isOf = lease !== undefined && slotName(lease) === slotName(slot)
        // A node that is to run the primary may have to fetch its memory.
        return isOf && isNamed(lease, reader)
      },
      clock,
      log,
    })
    const addresses = Object.values(networkInterfaces()).flatMap(each => each ?? [])
    const peers = createPeerClient({
      identity,
      // Peers accept connections from the address in our report.
      localAddress: addresses.some(({ address }) => address === options.address)
        ? options.address
        : undefined,
      store,
      apply: (stream, base, draft, cancel) => applyDelta(stream, base, draft, { ...cancel, onBuffer }),
      originFault: manifest =>
        originFault({ ...manifest, signer: signerOf(manifest) }, leaseOf(manifest.slot)),
      clock,
      random,
      log,
      onReceived: agentMetrics.shipped,
    })
    const shared: TaskContext = {
      node: options.node,
      driver: entered.driver,
      sentinel,
      inquiry,
      store,
      peers,
      understudies,
      sign: createSigner(identity.key),
      lazyPages,
      inheritedConnections: createInheritedConnections({
        inquiry,
        sever: createSever(entered.programs.directory),
        clock,
        log,
        signal,
      }),
      gates: createGates({ fs: hostProcFs, clock }),
      restorableKinds,
      progress,
      handoverPauses,
      paces,
      deaths,
      patch: async (pod, condition, signal) =>
        deaths.mayWrite(pod.uid, condition) ? patch(pod, condition, signal) : true,
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
        server.announce(slot)
        room.keeper?.noted()
        changed()
      },
      measureMemory: (pod, signal) => sizeOfMemory(hostProcFs, pod, signal),
      measureVolumes: (pod, upTo, signal) => sizeOfVolumes(hostProcFs, pod, upTo, signal),
      fromDisk: (lease, signal) => room.keeper?.others(lease, signal) ?? nothing(),
      suspendProbes: uid => suspensions.get(uid)?.() ?? (() => undefined),
      onProber: (uid, suspend) => {
        if (suspend === undefined) suspensions.delete(uid)
        else suspensions.set(uid, suspend)
      },
      event,
      runCommand: createCommandRunner({ fs: hostProcFs, clock }),
      obstacles: (pod, signal) =>
        findObstacles(pod, { fs: hostProcFs, programs: entered.programs.directory, signal }),
      metrics: agentMetrics,
      clock,
      log,
    }
    const observe = createObserver({
      node: options.node,
      machine: entered.machine,
      pods: stores.pods,
      leases: stores.leases,
      reports: stores.reports,
      store,
      understudies,
      proven: restorableKinds.kinds,
      dead: deaths.dead,
      handoverPauses,
    })
    room.keeper =
      disk &&
      createDiskKeeper({
        disk,
        store,
        agentsHalf: createAgentsHalf(api, options.namespace, clock),
        node: options.node,
        slots: () => slotsOnDisk(observe(state)),
        everyMs: options.diskInterval * 1000,
        onRecalled: ({ manifest: { slot } }) => shared.announce(slot),
        changed: () => changed(),
        clock,
        log,
      })
    const engine = createEngine({
      observe: () => observe(state),
      onDisk: slot => room.keeper?.onDisk(slot),
      isRead: slot => room.keeper?.isRead(slot) ?? true,
      perform: (...about) => perform(shared, ...about),
      deaths,
      store,
      progress,
      paces,
      report: slots => {
        node.slots = slots
        publish()
      },
      patch,
      onGone: (uid, signal) => endGone(shared, uid, signal),
      onRequest: requests.tell,
      onTrouble: (pod, duty, reason, message) => event(pod, 'Warning', reason, actions[duty.type], message),
      leases: stores.leases.list,
      sweepPods: async live => {
        for (const uid of await entered.records.list()) if (!live.has(uid)) await entered.records.remove(uid)
        await entered.tidy().catch((error: unknown) => log.warn({ err: error }, 'cannot tidy up'))
      },
      metrics: agentMetrics,
      clock,
      random,
      log,
    })
    for (const each of Object.values(stores)) each.subscribe(changed)
    // Takes over the watches of an earlier agent before it makes new ones; then the deaths that no agent has heard of.
    deaths.recall(await sentinel.watches(signal))
    sentinel.onDeath(engine.onDeath)
    engine.begin(signal)
    // Loads generations that outlived the boot, before any decision depends on the content of the tmpfs.
    await room.keeper
      ?.recall(AbortSignal.any([signal, AbortSignal.timeout(recallMs)]))
      .catch((error: unknown) => log.warn({ err: error }, 'some generations on the disk are not loaded yet'))
    const parts = [
      engine.run(signal),
      room.keeper?.run(signal),
      sentinel.run(signal),
      writeMissingRecords({ pods: stores.pods.list, api, clock, log }, signal),
      prove(entered, state, changed),
      watchSentinel(entered, state, changed),
    ]
    try {
      await Promise.all(parts)
    } finally {
      await Promise.allSettled(parts)
      peers.close()
      await server.close()
      sentinel.close()
    }
  }

  /** Repeats the checks until the node has shown once that it can move memory. */
  async function prove(entered: Node, state: { able: boolean }, changed: () => void): Promise<void> {
    const pauses = createBackoff(recheck, random)
    while (!signal.aborted) {
      try {
        node.checks = await entered.check(signal)
      } catch (error) {
        if (signal.aborted) return
        node.checks = [failedCheck('preflight', error)]
      }
      state.able = node.checks.every(({ ok }) => ok)
      log.info({ able: state.able, checks: node.checks }, 'preflight')
      publish()
      changed()
      if (state.able) return
      await clock.sleep(pauses.next(), signal).catch(() => undefined)
    }
  }

  /** Ensures that a sentinel runs. Its end costs no memory, but no process is watched until another sentinel runs. */
  async function watchSentinel(
    entered: Node,
    state: { sentinel: string },
    changed: () => void,
  ): Promise<void> {
    let round = 0
    while (!signal.aborted) {
      await clock.sleep(sentinelCheckMs, signal).catch(() => undefined)
      if (signal.aborted) return
      try {
        // A sentinel of an earlier version is replaced once it guards no pod; this needs no frequent check.
        round = (round + 1) % sentinelRounds
        const now = round === 0 ? await entered.ensureSentinel(signal) : await entered.presentSentinel(signal)
        if (now === state.sentinel) continue
        log.warn({ before: state.sentinel, now }, 'another sentinel runs, so the agent renews all watches')
        state.sentinel = now
        changed()
      } catch (error) {
        if (!signal.aborted) log.error({ err: error }, 'no sentinel runs')
      }
    }
  }

  /**
   * Slots whose memory may be on disks; undefined: a Lease names no incarnation, so not all slots are known.
   */
  function slotsOnDisk({ slots }: Snapshot): readonly SlotLease[] | undefined {
    if (
      stores.leases
        .list()
        .some(lease => lease.metadata.annotations?.[slotAnnotations.incarnation] === undefined)
    )
      return undefined
    const isOurs = ({ node, holders }: SlotLease) => node === options.node || holders.includes(options.node)
    return slots.filter(lease => isOurs(lease) && lease.policy?.disk !== false)
  }

  function leaseOf({ namespace, name }: SlotKey): SlotLease | undefined {
    const lease = stores.leases.get(`${namespace}/${name}`)
    return lease && parseSlotLease(lease)
  }
}
