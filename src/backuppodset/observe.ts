import type { BackupPodSet } from '../api/backuppodset.ts'
import { isPodKind, labels } from '../api/labels.ts'
import type { ParsedSet } from '../api/parse.ts'
import { kindLabelOf } from '../api/pod-kind.ts'
import { conditionTypes } from '../api/reasons.ts'
import { bySet } from '../api/set-label.ts'
import { restoreHash } from '../checkpoint/restore-hash.ts'
import type { Clock } from '../kube/clock.ts'
import { controllerOf } from '../kube/owner.ts'
import type { Pod } from '../kube/resources.ts'
import type { Store } from '../kube/store.ts'
import type { MemoryView } from '../slot/decide/memory-view.ts'
import type { PodRef } from '../slot/decide/pod-ref.ts'
import type { PulledView } from '../slot/decide/pulled-view.ts'
import { observeServices, type ServicesDeps } from '../slot/endpoints/observe.ts'
import { withPulled, withVacated } from '../slot/http-state/observe.ts'
import { epochOf, isFinished, slotOf, type Wakening } from '../slot/observe/candidate.ts'
import { slotLeasesOf } from '../slot/observe/slot-leases.ts'
import { isForMemory, isRetired, isUnpublished, withStage } from '../slot/observe/stage.ts'
import { completingIn } from './completion.ts'
import { isEachCovered, strandedPods } from './decide/stranded.ts'
import { type MovesDeps, observeMoves } from './memory/moves.ts'
import { type MemoryDeps, type MemoryRecord, observeMemory } from './memory/observe.ts'
import { policyOf } from './memory/policy.ts'
import type { RetirementDelay } from './memory/retirement-delay.ts'
import { lastNumber } from './numbers.ts'
import { templateHash } from './pod/template-hash.ts'
import { viewOf } from './pod/view.ts'
import { byController } from './pod-indexes.ts'
import { createReadings, type Readings } from './readings.ts'
import { observeRevisions, type RevisionsDeps } from './revisions/observe.ts'
import type { SetRecord } from './set-record.ts'
import type { PodView, Snapshot } from './snapshot.ts'
import type { UnlabelledPods } from './unlabelled-pods.ts'

export interface Observed {
  readonly snapshot: Snapshot
  /** Returns a pod of this set as the rules see it; undefined if its label names no kind. */
  readonly viewOf: (pod: Pod) => PodView | undefined
  /** The pods behind the snapshot's views, by uid; the status is computed from them. */
  readonly pods: ReadonlyMap<string, Pod>
}

/** The parts of a set's record that a pass reads. */
export type ObservedRecord = Pick<
  SetRecord,
  'lostPrimaries' | 'failoverHistory' | 'claims' | 'handoverTimes' | 'strandings' | 'pulled' | 'since'
>

export interface ObserveDeps {
  readonly pods: Store<Pod>
  readonly clock: Clock
  readonly record: ObservedRecord
  /** True for a pod whose deletion the API server accepted from us but that the cache may still show as alive. */
  readonly isDeleted: (uid: string) => boolean
  readonly wakening: (uid: string) => Wakening | undefined
  /** Why a pod did not get on stage, or did not take a state, when this process last tried it. */
  readonly setbackOf: (uid: string) => string | undefined
  /** Cached views from earlier passes. Absent: each pass computes all of them. */
  readonly readings?: Readings
  /** Absent in tests that do not depend on memory. */
  readonly memory?: Omit<MemoryDeps, keyof MemoryRecord> & { readonly retirementDelay: RetirementDelay }
  /** Pods without our label that still name a set as their owner; absent in tests of other things. */
  readonly unlabelledPods?: Pick<UnlabelledPods, 'of'>
  /** As in `Snapshot`. */
  readonly isSpecPartial?: boolean
  readonly services?: ServicesDeps
  /** Absent in tests of other things. */
  readonly moves?: MovesDeps
  readonly revisions?: RevisionsDeps
}

/** The change of ownership that a pod needs. */
export type Claim = 'ours' | 'adopt' | 'release' | 'ignore'

/** Compares a pod's labels (the set that it should belong to) with its controller reference (the set that owns it). */
export function claimOf(set: Pick<ParsedSet, 'name' | 'uid'>, pod: Pod): Claim {
  const isOfSet = pod.metadata.labels?.[labels.set] === set.name
  const matches = isOfSet && isPodKind(kindLabelOf(pod))
  const controller = controllerOf(pod)
  // A retired pod: its set deletes it, and no set adopts it.
  if (isOfSet && isRetired(pod)) return controller?.uid === set.uid ? 'ours' : 'ignore'
  if (controller === undefined)
    return matches && pod.metadata.deletionTimestamp === undefined && !isFinished(pod) ? 'adopt' : 'ignore'
  if (controller.uid !== set.uid) return 'ignore'
  if (matches) return 'ours'
  return pod.metadata.deletionTimestamp === undefined ? 'release' : 'ignore'
}

/** Performs all reads of a pass, from the caches only. */
export function observe(set: ParsedSet, status: BackupPodSet['status'], deps: ObserveDeps): Observed {
  const { record } = deps
  const readings = deps.readings ?? createReadings()
  const candidates = candidatesOf(set, deps)
  const memory = memoryOf(set, deps, candidates, readings)
  const pulled = set.pull && record.pulled.view()
  const view = viewer(set, deps, readings, memory, pulled)
  // The status still has the epoch of a primary that vanished while there was no leader.
  const epochs = new Map(status?.slots?.map(({ slot, epoch }) => [slot, epoch]))
  const saw = (slot: number, epoch: number) => epochs.set(slot, Math.max(epochs.get(slot) ?? 0, epoch))
  const completing = completingIn(set, status, candidates.values(), memory)
  const others = [...candidates.values()].filter(
    ({ metadata }) => metadata.name !== completing.completed?.pod,
  )
  const { live, retiring, orphans, strays, finished } = sorted(set, deps, others, view, saw)
  for (const { lease } of memory?.slots.values() ?? []) saw(lease.slot, lease.epoch)
  const noted = record.lostPrimaries.of()
  const lost = pulled ? withVacated(noted, status, live, deps.clock.monotonic()) : noted
  for (const { slot, epoch } of lost.values()) saw(slot, epoch)
  const former = formerSlots(set, deps)
  const revisions = deps.revisions && observeRevisions(set, deps.revisions)
  const current = revisions?.current
  const hash = set.memory && (current?.restoreHash ?? restoreHash(set.template, set.memory.containers))
  const services = deps.services && observeServices(set, candidates.values(), deps.services)
  const moves = memory && deps.moves ? observeMoves(`${set.namespace}/${set.name}`, deps.moves) : []
  const retired = retiring.flatMap(pod => deps.memory?.retirementDelay.of(pod, live) ?? [])
  const seen: Snapshot = {
    set,
    ...(set.isNumbered && { lastNumber: lastNumber(set.name, namesIn(candidates, memory, lost), status) }),
    templateHash: current?.templateHash ?? templateHash(set),
    ...(hash !== undefined && { restoreHash: hash, policy: policyOf(set, hash) }),
    ...(deps.isSpecPartial && { isSpecPartial: true }),
    ...completing,
    ...(revisions && { revisions }),
    pods: live,
    orphans,
    strays,
    finished,
    epochs,
    lost,
    isNew: isNew(status),
    failovers: record.failoverHistory.of(),
    now: deps.clock.now(),
    monotonicNow: deps.clock.monotonic(),
    ...(memory && { memory }),
    ...(pulled && { pulled }),
    ...(former.length > 0 && { formerSlots: former }),
    ...(services && { services }),
    ...(retired.length > 0 && { retired }),
    ...(moves.length > 0 && { moves }),
  }
  const stranded = record.strandings.note(strandedPods(seen), isEachCovered(seen))
  const snapshot: Snapshot = { ...seen, ...(stranded && { stranded }) }
  return { snapshot: Object.freeze(snapshot), viewOf: view, pods: candidates }
}

/** Returns the names of all pods, those that are ending included, and of those that have or had a slot. */
const namesIn = (
  candidates: ReadonlyMap<string, Pod>,
  memory: MemoryView | undefined,
  lost: Snapshot['lost'],
): readonly string[] => [
  ...[...candidates.values()].map(({ metadata }) => metadata.name),
  ...[...(memory?.slots.values() ?? [])].map(({ lease }) => lease.holder.name),
  ...[...lost.values()].map(({ name }) => name),
]

function memoryOf(
  set: ParsedSet,
  { memory, record }: ObserveDeps,
  candidates: ReadonlyMap<string, Pod>,
  { stageOf }: Readings,
): MemoryView | undefined {
  if (!set.memory || !memory) return undefined
  const { claims, handoverTimes } = record
  return observeMemory({ ...set, memory: set.memory }, uid => candidates.get(uid), {
    ...{ ...memory, claims, handoverTimes, stageOf },
    since: record.since.memory,
  })
}

/** Returns the pods that belong to the set, or might, by uid. */
function candidatesOf(set: ParsedSet, deps: ObserveDeps): ReadonlyMap<string, Pod> {
  const key = `${set.namespace}/${set.name}`
  return new Map(
    [
      ...deps.pods.by(bySet, key),
      ...deps.pods.by(byController, set.uid),
      ...(deps.unlabelledPods?.of(key) ?? []),
    ]
      .filter(pod => pod.metadata.namespace === set.namespace)
      .map(pod => [pod.metadata.uid, pod]),
  )
}

/** Returns a function that gives the view of a pod, as all caches together show it. */
function viewer(
  set: ParsedSet,
  deps: ObserveDeps,
  readings: Readings,
  memory: MemoryView | undefined,
  pulled: PulledView | undefined,
): (pod: Pod) => PodView | undefined {
  const summons = new Map([...(memory?.slots.values() ?? [])].map(({ lease }) => [lease.holder.uid, lease]))
  const since = deps.record.since.pods.pass()
  // Durations use our own clock, since clocks of nodes may be wrong. If the reported time changes, the pod became
  // unready again, and the count restarts.
  const unreadySince = (uid: string, told: number | undefined) => {
    const at = since(`unready/${uid}/${told}`, told !== undefined)
    return at === undefined ? told : deps.clock.now() - (deps.clock.monotonic() - at)
  }
  const seenOf = (pod: Pod) => {
    const at = since(pod.metadata.uid, isUnpublished(readings.stageOf(pod)))
    const node = pod.spec?.nodeName
    return {
      unpublishedMs: at === undefined ? undefined : deps.clock.monotonic() - at,
      silent: node !== undefined && deps.memory?.reports.isSilent(node) === true,
      now: deps.clock.now(),
      unreadySince: (told: number | undefined) => unreadySince(pod.metadata.uid, told),
    }
  }
  return pod => {
    const { uid } = pod.metadata
    const wakening = deps.wakening(uid)
    const told = wakening === undefined ? readings.viewOf(pod) : viewOf(pod, wakening)
    const seen = told && { ...told, unreadySince: unreadySince(uid, told.unreadySince) }
    const known =
      seen === undefined || (memory === undefined && !isForMemory(pod))
        ? seen
        : withStage(
            pod,
            seen,
            summons.get(uid),
            deps.memory && deps.setbackOf(uid),
            seenOf(pod),
            readings.stageOf(pod),
          )
    if (!set.pull || !pulled || !known) return known
    return withPulled(pod, known, set.pull, pulled, { refused: deps.setbackOf(uid), now: deps.clock.now() })
  }
}

/** The pods of a set, by what the pass does with them. */
interface Sorted {
  readonly live: readonly PodView[]
  readonly retiring: readonly Pod[]
  readonly orphans: readonly PodView[]
  readonly strays: readonly PodRef[]
  readonly finished: readonly PodView[]
}

/** @param saw called with each epoch that a pod has in its slot. */
function sorted(
  set: ParsedSet,
  deps: ObserveDeps,
  candidates: Iterable<Pod>,
  view: (pod: Pod) => PodView | undefined,
  saw: (slot: number, epoch: number) => void,
): Sorted {
  const live: PodView[] = []
  const retiring: Pod[] = []
  const orphans: PodView[] = []
  const strays: PodRef[] = []
  const finished: PodView[] = []
  for (const pod of candidates) {
    const claim = claimOf(set, pod)
    if (claim === 'ignore') continue
    if (claim === 'release') {
      const { name, uid, resourceVersion } = pod.metadata
      strays.push({ name, uid, resourceVersion })
      continue
    }
    const slot = slotOf(pod)
    if (slot !== undefined) saw(slot, epochOf(pod))
    if (pod.metadata.deletionTimestamp !== undefined || deps.isDeleted(pod.metadata.uid)) continue
    if (isRetired(pod)) {
      retiring.push(pod)
      continue
    }
    const wakening = deps.wakening(pod.metadata.uid)
    const seen = view(pod)
    if (seen === undefined) continue
    if (wakening?.slot !== undefined) saw(wakening.slot, wakening.epoch)
    if (isFinished(pod)) finished.push(seen)
    else live.push(seen)
    if (claim === 'adopt') orphans.push(seen)
  }
  return { live, retiring, orphans, strays, finished }
}

/** Returns the Leases of a set that keeps no memory any more. */
const formerSlots = (set: ParsedSet, deps: ObserveDeps): NonNullable<Snapshot['formerSlots']> =>
  set.memory || !deps.memory
    ? []
    : slotLeasesOf(deps.memory.leases, set).map(({ lease: { slot, policy }, object: { metadata } }) => ({
        ...{ slot, policy },
        lease: { uid: metadata.uid, resourceVersion: metadata.resourceVersion },
      }))

/**
 * True while the set's first pods are yet to be created: its status is empty, or the set has been refused or paused
 * since its creation.
 */
function isNew(status: BackupPodSet['status']): boolean {
  if (status?.observedGeneration === undefined || status.replicas === undefined) return true
  const { replicas, hotbackups = 0, coldbackups = 0, conditions = [] } = status
  const wasPaused = conditions.some(({ type, status }) => type === conditionTypes.paused && status === 'True')
  return wasPaused && replicas + hotbackups + coldbackups === 0
}
