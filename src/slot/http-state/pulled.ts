import { Agent } from 'undici'
import type { ParsedPull } from '../../api/memory.ts'
import { podAddress } from '../../api/pod-address.ts'
import { kindLabelOf } from '../../api/pod-kind.ts'
import type { SlotStatus } from '../../api/slot-status.ts'
import type { Clock } from '../../kube/clock.ts'
import type { Log } from '../../kube/log.ts'
import { keyOfRef } from '../../kube/object.ts'
import type { Random } from '../../kube/random.ts'
import { isReady } from '../../kube/ready.ts'
import type { Pod } from '../../kube/resources.ts'
import type { Store } from '../../kube/store.ts'
import type { WriteBehind } from '../../state-store/write-behind.ts'
import type { StatePort } from '../act/context.ts'
import type { ReadPod } from '../act/read-pod.ts'
import type { PulledView, StateRef } from '../decide/pulled-view.ts'
import type { Candidate } from '../decide/snapshot.ts'
import { epochOf } from '../observe/candidate.ts'
import type { StateBudget } from './budget.ts'
import { containerOf } from './container.ts'
import { giveState } from './give.ts'
import type { PullMetrics } from './metrics.ts'
import { createPuller, type SetRef, type Target } from './puller.ts'
import { createRefresher, followersOf } from './refresh.ts'
import { createStates } from './states.ts'
import type { PulledFacts } from './status.ts'

/** An owner whose slots have a state that is pulled; without `pull` it has none any more. */
interface Pulling extends SetRef {
  readonly pull: ParsedPull | undefined
}

interface SlotsStatus {
  readonly slots?: readonly SlotStatus[]
}

/** The pulled states of one owner. */
export interface PulledOfSet {
  /** Returns false while states of the previous operator are being loaded; once, and for two seconds at most. */
  loaded(set: Pulling, status: SlotsStatus | undefined): boolean
  view(): PulledView
  facts(set: Pulling): PulledFacts | undefined
  acts(set: Pulling, signal: AbortSignal): StatePort
  /**
   * Call at the end of each pass: determines which primaries to pull from, and which states no pod will need. Does
   * nothing if the set was deleted, or the term has ended, during the pass: otherwise its primaries would be polled forever.
   */
  after(
    set: Pulling,
    pass: {
      /** Slots without a primary that are to have one again. */
      readonly lost: ReadonlySet<number>
      /** Slots that the owner has given up in this pass. */
      readonly released: readonly number[]
      /** As they are after the pass. */
      readonly pods: readonly Candidate[]
      readonly status: SlotsStatus | undefined
    },
  ): void
}

/** Everything about pulled state that the controller of sets needs. */
export interface Pulled {
  /** @param life fires when the set is deleted: nothing of it stays. */
  ofSet(setUid: string, life: AbortSignal): PulledOfSet
  /**
   * This process becomes the leader. `goesOn`: no other process has led since its last term, so its states are still
   * the newest.
   */
  begin(goesOn: boolean): void
  /** The term ends: pulls and pushes stop. The states stay, since this process may become the next leader. */
  end(): Promise<void>
  close(): Promise<void>
}

export interface PulledDeps {
  readonly store: WriteBehind
  readonly budget: StateBudget
  readonly pods: Store<Pod>
  /** Reads from the API server. */
  readonly read: ReadPod
  readonly clock: Clock
  readonly random: Random
  readonly log: Log
  readonly metrics?: PullMetrics | undefined
  readonly isDeleted: (podUid: string) => boolean
  /** A pass is worthwhile. `urgent`: at once. */
  readonly changed: (setUid: string, urgent: boolean) => void
}

/** Connections to one pod: for a pull, or a push to a backup, and another push at the same time. */
const connectionsPerPod = 2
const connectMs = 5_000

export function createPulled(deps: PulledDeps): Pulled {
  const { pods, clock, random, log, store, budget } = deps
  // No keep-alive: pods come and go, and at one request in some seconds a kept connection gains nothing.
  const dispatcher = new Agent({
    connections: connectionsPerPod,
    pipelining: 0,
    connect: { timeout: connectMs },
    // Each request has its own deadline.
    headersTimeout: 0,
    bodyTimeout: 0,
  })
  const states = createStates({
    ...{ store, budget, clock, random, log },
    changed: uid => deps.changed(uid, true),
  })
  const refresher = createRefresher({
    ...{ states, budget, dispatcher, clock, log, metrics: deps.metrics },
    backups: () => pods.list().flatMap(pod => (kindLabelOf(pod) === 'hotbackup' ? [pod.metadata.uid] : [])),
    addressOf: async (set, { name, uid }, signal) => {
      const ref = { namespace: set.namespace, name }
      const isBackup = (pod: Pod | undefined) =>
        pod?.metadata.uid === uid &&
        pod.metadata.deletionTimestamp === undefined &&
        !deps.isDeleted(uid) &&
        kindLabelOf(pod) === 'hotbackup'
      if (!isBackup(pods.get(keyOfRef(ref)))) return undefined
      // The address in the cache may belong to another pod by now, and a state must not leak to it.
      const now = await deps.read(ref, signal)
      return isBackup(now) ? podAddress(now?.status?.podIP, 'pod') : undefined
    },
  })
  const puller = createPuller({
    states,
    budget,
    dispatcher,
    clock,
    log,
    metrics: deps.metrics,
    isCurrent: (set, target, container) => {
      const pod = pods.get(keyOfRef({ namespace: set.namespace, name: target.holder.name }))
      return pod !== undefined && !deps.isDeleted(target.holder.uid) && isCurrent(pod, target, container)
    },
    confirms: async (set, { holder, ip }, signal) => {
      const pod = await deps.read({ namespace: set.namespace, name: holder.name }, signal)
      return pod?.metadata.uid === holder.uid && pod.status?.podIP === ip
    },
    changed: (set, isNew) => deps.changed(set.uid, isNew),
    committed: refresher.offer,
  })
  // Passes run only in a term, and one that was abandoned may end after it.
  let isLeading = false
  const ofSet = (setUid: string, life: AbortSignal): PulledOfSet => ({
    loaded(set, status) {
      const slots = (status?.slots ?? []).map(({ slot }) => slot)
      const container = set.pull?.container ?? ''
      return states.loaded(set, slots, holder => {
        const pod = pods.get(keyOfRef({ namespace: set.namespace, name: holder.name }))
        return (
          pod?.metadata.uid === holder.uid &&
          pod.metadata.deletionTimestamp === undefined &&
          containerOf(pod, container).restarts === holder.restarts
        )
      })
    },
    view: () => states.view(setUid),
    facts: ({ uid, pull }) =>
      pull && {
        pull,
        stateOf: slot => states.get(uid, slot),
        problemOf: slot => states.problem(uid, slot),
        storeHealthy: store.store.durable ? store.healthy() : undefined,
        monotonicNow: clock.monotonic(),
      },
    acts: (set, signal) => ({
      async giveState(pod, slot, fresh) {
        // A push to it as a backup must not arrive after its slot's state: wait until no answer is outstanding.
        const known = pods.get(keyOfRef({ namespace: set.namespace, name: pod.name }))
        const restarts = known && set.pull ? containerOf(known, set.pull.container).restarts : 0
        const timeoutMs = set.pull?.push.everyInterval ? set.pull.timeoutMs : 0
        const isClear = await refresher.quiet({ uid: pod.uid, restarts }, { timeoutMs }, signal)
        if (!isClear)
          return {
            result: { type: 'gone', why: 'an earlier push to it as a hot backup got no answer' },
            state: undefined,
          }
        if (fresh) await puller.now(set.uid, slot, signal)
        const state = states.get(set.uid, slot)
        if (state === undefined || set.pull === undefined)
          return { result: { type: 'gone', why: 'its slot no longer has a state' }, state: undefined }
        const ref: StateRef = { ...state, bytes: state.bytes.length }
        const startedAt = clock.monotonic()
        const { name, uid } = pod
        const result = await giveState(
          { pod: { namespace: set.namespace, name, uid }, pull: set.pull, state, signal },
          { pods, clock, dispatcher, read: deps.read },
        )
        deps.metrics?.pushed(result.type, (clock.monotonic() - startedAt) / 1000)
        return { result, state: ref }
      },
      heldState: (slot, holder) => states.inherited(set.uid, slot, holder),
      refusedState: slot => states.refused(set.uid, slot),
      beganAnew: slot => states.drop(set.uid, [slot]),
    }),
    after(set, { lost, released, pods: views, status }) {
      if (life.aborted || !isLeading) return
      if (set.pull === undefined) {
        puller.stop(set.uid)
        refresher.stop(set.uid)
        states.drop(set.uid)
        return
      }
      if (released.length > 0) states.drop(set.uid, released)
      const held = new Set(
        views.flatMap(pod => (pod.kind === 'primary' && pod.slot !== undefined ? [pod.slot] : [])),
      )
      const orphaned = [...states.view(set.uid).slots.keys()].filter(
        slot => !held.has(slot) && !lost.has(slot),
      )
      if (orphaned.length > 0) states.drop(set.uid, orphaned)
      puller.sync(setRef(set), set.pull, targetsOf(set, views, status, pods))
      const followers = set.pull.push.everyInterval ? followersOf(views) : []
      refresher.sync(setRef(set), set.pull, followers, new Set(views.map(({ uid }) => uid)))
    },
  })
  return {
    ofSet(setUid, life) {
      const forget = () => {
        puller.stop(setUid)
        refresher.stop(setUid)
        states.drop(setUid)
      }
      life.addEventListener('abort', forget, { once: true })
      return ofSet(setUid, life)
    },
    begin(goesOn) {
      isLeading = true
      if (goesOn) {
        states.goOn()
        return
      }
      states.clear()
      refresher.begin()
    },
    async end() {
      isLeading = false
      puller.stop()
      refresher.stop()
      await Promise.all([puller.settled(), refresher.settled()])
    },
    close: () => dispatcher.destroy(),
  }
}

const setRef = ({ namespace, name, uid }: Pulling): SetRef => ({ namespace, name, uid })

/** Returns the ready primaries whose takeover of their slot is complete. */
function targetsOf(
  set: Pulling,
  views: readonly Candidate[],
  status: SlotsStatus | undefined,
  pods: Store<Pod>,
): Target[] {
  const bySlot = new Map<number, Candidate>()
  for (const pod of views) {
    if (pod.kind !== 'primary' || pod.slot === undefined) continue
    const other = bySlot.get(pod.slot)
    if (other === undefined || pod.epoch > other.epoch) bySlot.set(pod.slot, pod)
  }
  return [...bySlot].flatMap(([slot, view]): Target[] => {
    if (!view.ready || view.waking || view.pulled?.emptied) return []
    const pod = pods.get(keyOfRef({ namespace: set.namespace, name: view.name }))
    const ip = pod?.metadata.uid === view.uid ? podAddress(pod.status?.podIP, 'pod') : undefined
    if (ip === undefined || view.pulled === undefined) return []
    const { name, uid, epoch } = view
    const told = status?.slots?.find(each => each.slot === slot && each.pod === name)
    return [
      {
        slot,
        ip,
        holder: { name, uid, epoch, restarts: view.pulled.restarts },
        floor: told?.generation ?? 0,
      },
    ]
  })
}

function isCurrent(pod: Pod, { holder, ip }: Target, container: string): boolean {
  const life = containerOf(pod, container)
  return (
    pod.metadata.uid === holder.uid &&
    pod.metadata.deletionTimestamp === undefined &&
    kindLabelOf(pod) === 'primary' &&
    epochOf(pod) === holder.epoch &&
    isReady(pod) &&
    pod.status?.podIP === ip &&
    life.running &&
    life.restarts === holder.restarts
  )
}
