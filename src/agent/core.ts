/**
 * The core of an agent: all code that decides and acts, without its platform. A node, a test and the simulation each give
 * it a platform.
 */
import { AgentError } from '../api/agent-errors.ts'
import type { NodeReport, SlotReport } from '../api/node-report.ts'
import type { SlotKey } from '../api/slot-key.ts'
import { slotName } from '../checkpoint/manifest.ts'
import type { Random } from '../kube/random.ts'
import type { Lease, Pod } from '../kube/resources.ts'
import type { Store } from '../kube/store.ts'
import type { Machine } from '../slot/decide/machine-fit.ts'
import { deathSpans } from '../traces/agent.ts'
import { elsewhere, isKeptElsewhere, standbyGeneration, successorGeneration } from './observe/elsewhere.ts'
import { createObserver, type NodeState } from './observe/observe.ts'
import type { Snapshot } from './observe/snapshot.ts'
import type { ApiAnswer } from './report/api-answer.ts'
import type { VotingNews } from './sentinel/client.ts'
import { createDeaths, lostPagesWhat } from './state/deaths.ts'
import { createFencing, type Fencing } from './state/fencing.ts'
import { createGrants } from './state/grants.ts'
import { createHandoverPauses } from './state/handover-pauses.ts'
import { createLazyPages } from './state/lazy-pages.ts'
import { createPaces } from './state/paces.ts'
import { createProbeSuspensions, type ProbeSuspensions } from './state/probe-suspensions.ts'
import { createProgress } from './state/progress.ts'
import { createStrangers } from './state/strangers.ts'
import { createUnderstudies } from './state/understudies.ts'
import { type Agree, createAgree } from './tasks/agree.ts'
import { type ApiVoter, createApiVoter } from './tasks/api-voter.ts'
import { createEngine, type Engine } from './tasks/engine.ts'
import { createPresent, type Present } from './tasks/present.ts'
import { dropWatch, release } from './tasks/remains.ts'
import type { NodeCapabilities, PodCapabilities, TaskContext } from './tasks/task-context.ts'
import { createKeyedSignal, type KeyedSignal } from './transfer/keyed-signal.ts'

export interface Platform {
  readonly tools: NodeCapabilities
  /** Absent: memory is not compared with it. */
  readonly machine?: Machine
  readonly stores: {
    readonly pods: Store<Pod>
    readonly leases: Store<Lease>
    readonly reports: Store<NodeReport>
  }
  /** The state of the node at each pass. */
  readonly state: NodeState
  /** Default: probes run and are suspended here. */
  readonly probes?: ProbeSuspensions
  /** Writes a condition of a pod; false: the pod is gone. */
  readonly patch: PodCapabilities['patch']
  /** Publishes the report's slots, and the run of the sentinel whose promises and statements they contain. */
  readonly report: (slots: readonly SlotReport[], run: string | undefined) => void
  /** Asks the API server for an answer as a voter; absent: no sentinel here needs one. @throws KubeError. */
  readonly askApi?: (timeoutMs: number, signal: AbortSignal) => Promise<ApiAnswer | undefined>
  /** Called with the slot of each new generation on this node. */
  readonly announced: (slot: SlotKey) => void
  /** The slot's generations on the disk of this node. */
  readonly onDisk?: (slot: string) => SlotReport['onDisk']
  /** Why the disk of this node takes no newer generation of a slot. */
  readonly diskRefusal?: (slot: string) => string | undefined
  /** Whether the disk of this node has been read for a slot. */
  readonly isRead?: (slot: string) => boolean
  /** Forgets everything that belongs to vanished pods of this node. */
  readonly sweepPods: (live: ReadonlySet<string>) => Promise<void>
  readonly random: Random
  /** Runs something soon. Default: `setImmediate`. */
  readonly defer?: (run: () => void) => void
}

export interface Core
  extends Pick<Engine, 'changed' | 'onDeath' | 'begin' | 'makeWay' | 'run'>,
    Pick<Fencing, 'listens'>,
    Pick<ApiVoter, 'answered'> {
  /** From the sentinel. */
  readonly onVoting: (news: VotingNews) => void
  /** Takes over the sentinel's watches at the start of an agent. */
  readonly recall: ReturnType<typeof createDeaths>['recall']
  /** Answers the agent of a dead primary on another node. */
  readonly agree: Agree
  /** Reads the caches. */
  readonly observe: () => Snapshot
  /** Announces a new generation on this node, also to the tasks that wait for it. */
  readonly announce: (slot: SlotKey) => void
}

/**
 * Creates the core. Every change of a store causes a pass, from `begin` on.
 *
 * @param signal ends the work that runs beside its tasks.
 */
export function createCore(platform: Platform, signal: AbortSignal): Core {
  const { tools, stores, state, machine, random } = platform
  const { node, store, clock, log, metrics } = tools
  const changed = () => engine.changed()
  const slots = createSlotMemory(changed, platform)
  const requests = createKeyedSignal()
  const pods = createPodMemory(changed, () => present, requests, platform, signal)
  const observe = createObserver({
    grants: pods.grants.view,
    ...{ node, ...stores, store, state, understudies: pods.understudies },
    ...(machine !== undefined && { machine }),
    proven: tools.restorableKinds.kinds,
    dead: pods.deaths.dead,
    handoverPauses: slots.handoverPauses,
    fence: pods.fencing.view,
  })
  const present = createPresent(observe, requests.tell)
  const apiVoter = createApiVoter({
    ...{ sentinel: tools.sentinel, clock, log, signal },
    guarded: pods.fencing.view.guarded,
    fenced: pods.fencing.view.fenced,
    async isStillCalled(uid, until) {
      const lease = present.snapshot.slots.find(({ holder }) => holder.uid === uid)
      if (lease === undefined) return false
      const now = await tools.inquiry.lease(lease, until)
      if (now !== undefined) return now.holder.uid === uid && now.ending !== uid
      const pod = present.podOf(uid)
      return pod !== undefined && (await tools.inquiry.isThere(pod, until))
    },
    ask: platform.askApi ?? (async () => undefined),
  })
  const context: TaskContext = {
    ...{ ...tools, ...slots, ...pods, requests },
    patch: pods.deaths.patch,
    showLife: apiVoter.alone,
    elsewhere: lease => elsewhere(present.snapshot, lease),
    isKeptElsewhere: (lease, generation) => isKeptElsewhere(present.snapshot, lease, generation),
    successorGeneration: lease => successorGeneration(present.snapshot, lease),
    standbyGeneration: lease => standbyGeneration(present.snapshot, lease),
    policyOf: present.policyOf,
    podOf: present.podOf,
    slotHeldBy: present.slotHeldBy,
    isToEnd: present.isToEnd,
    wayOf: present.wayOf,
    heldPods: present.heldPods,
    matters: present.matters,
  }
  const { onDisk, diskRefusal, isRead, report, patch, sweepPods, defer } = platform
  const engine = createEngine({
    ...{ present, store, report, patch, sweepPods, onDisk, diskRefusal, isRead, defer },
    ...{ deaths: pods.deaths, progress: slots.progress, paces: slots.paces },
    ...{ context, stores, signal, metrics, clock, random, log },
  })
  return {
    ...engine,
    recall: pods.deaths.recall,
    listens: pods.fencing.listens,
    answered: apiVoter.answered,
    onVoting(news) {
      pods.fencing.onNews(news)
      if (news.type === 'alone') apiVoter.alone(news, present.timeoutOf(news.name) ?? defaultTimeoutMs)
    },
    agree: createAgree({ present, grants: pods.grants, isReady: engine.isReady, clock, log }),
    observe,
    announce: slots.announce,
  }
}

/** For a primary whose Lease this agent has not read yet. */
const defaultTimeoutMs = 3_000

/** The parts that live as long as a slot has the same life on this node. */
function createSlotMemory(changed: () => void, { tools, announced }: Platform) {
  const generations = createKeyedSignal()
  return {
    progress: createProgress(changed),
    handoverPauses: createHandoverPauses(tools.clock),
    paces: createPaces(),
    generations,
    announce(slot: SlotKey) {
      generations.tell(slotName(slot))
      announced(slot)
      changed()
    },
  }
}

/** The parts that live as long as a pod of this node. */
function createPodMemory(
  changed: () => void,
  present: () => Present,
  requests: KeyedSignal,
  { tools, patch, probes = createProbeSuspensions() }: Platform,
  signal: AbortSignal,
) {
  const { node, driver, store, sentinel, metrics, trace, event, clock, log } = tools
  const lazyPages = createLazyPages({
    ...{ driver, store, metrics, clock, log },
    onLost(uid, container, message) {
      metrics.pagesLost()
      const pod = present().podOf(uid)
      if (pod === undefined) return
      event(pod, 'Warning', 'PagesLost', 'Promote', message)
      // The sentinel has reported the death already, if it watched the app.
      if (present().matters(pod)) void deaths.declare(pod, container, lostPagesWhat)
    },
  })
  const orLog = (what: string, about: object) => (error: unknown) => log.warn({ err: error, ...about }, what)
  const deaths = createDeaths({
    podOf: uid => present().podOf(uid),
    slotOf: pod => present().slotOf(pod),
    holds: pod => present().slotHeldBy(pod.uid) !== undefined,
    matters: pod => present().matters(pod),
    hasHeir: pod => present().hasHeir(pod),
    hasGrant: pod => present().hasGrant(pod),
    during: tools.during,
    leftOf: pod => present().leftOf(pod),
    patch,
    unwatch: name => void dropWatch(sentinel, name, signal).catch(orLog('cannot remove a watch', { name })),
    release: uid => void release(sentinel, uid, signal).catch(orLog('cannot open a redirect', { uid })),
    changed,
    lostPages: lazyPages.wasLost,
    endedEarly: uid => understudies.endedEarly(uid),
    onDeclared(pod, told) {
      if (told.diedAt !== undefined) metrics.deathTold((told.toldAt - told.diedAt) / 1000)
      const { slot: name, epoch } = pod
      if (name !== undefined) trace?.(() => deathSpans(node, pod, { name, epoch }, told))
      event(pod, 'Warning', 'Died', 'Watch', 'its app has ended, and with it the memory of the slot')
    },
    ...{ clock, log },
  })
  const understudies = createUnderstudies(driver, clock, changed, lazyPages.note)
  /** Ends the suspension of a fenced pod's probes. */
  const resumeProbes = new Map<string, () => void>()
  const fencing = createFencing({
    changed,
    onFenced(uid, isFenced) {
      metrics.fenced(fencing.view.fenced.size)
      resumeProbes.get(uid)?.()
      if (isFenced) resumeProbes.set(uid, probes.suspendProbes(uid))
      else resumeProbes.delete(uid)
      // A checkpoint waits for it.
      requests.tell(uid)
      const pod = present().podOf(uid)
      if (pod === undefined || deaths.dead.has(uid)) return
      if (isFenced) event(pod, 'Warning', 'Fenced', 'Fence', new AgentError('Fenced').message)
      else event(pod, 'Normal', 'Unfenced', 'Fence', 'it runs again')
    },
  })
  const grants = createGrants({ files: tools.grantFiles, changed, clock, log })
  return { ...probes, lazyPages, deaths, understudies, fencing, grants, strangers: createStrangers() }
}
