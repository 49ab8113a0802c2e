import type { BackupPodSet } from '../api/backuppodset.ts'
import { labels } from '../api/labels.ts'
import { isFinished, isUnderWay, type Migration } from '../api/migration.ts'
import type { NodeReport, SlotReport } from '../api/node-report.ts'
import { type NumberedSlotLease, slotLeaseName } from '../api/numbered-slot.ts'
import { type ParsedMigration, parseMigration } from '../api/parse-migration.ts'
import { kindLabelOf } from '../api/pod-kind.ts'
import { bySet } from '../api/set-label.ts'
import { isSameSlot } from '../api/slot-key.ts'
import { tookOver } from '../api/slot-lease.ts'
import type { Clock } from '../kube/clock.ts'
import { keyOfRef } from '../kube/object.ts'
import type { Lease, Node, Pod } from '../kube/resources.ts'
import type { Store } from '../kube/store.ts'
import { hasLabels, impliedDowntimeMs, targetsOf } from '../slot/decide/move.ts'
import { candidateOf, slotOf } from '../slot/observe/candidate.ts'
import type { Reports } from '../slot/observe/reports.ts'
import type { Since } from '../slot/observe/since.ts'
import { presentLeases } from '../slot/observe/slot-leases.ts'
import { stageOf } from '../slot/observe/stage.ts'
import { ableNodes, movingSlots, type Source, type UnderWay, underWayIn } from './moving-slots.ts'
import type { Patience } from './patience.ts'
import { shortestRestartMs } from './restart.ts'
import type { Stop, Stops } from './stops.ts'
import type { Facts, Held, MigrationView, Passed, Saved, Target } from './view.ts'

/** Stores whose changes may concern a Migration. */
export interface FollowedStores {
  readonly migrations: Store<Migration>
  readonly sets: Store<BackupPodSet>
  readonly pods: Store<Pod>
  readonly leases: Store<Lease>
  readonly reports: Store<NodeReport>
  readonly nodes: Store<Node>
}

export interface ObserveDeps extends FollowedStores {
  readonly clock: Pick<Clock, 'monotonic'>
  readonly since: Pick<Since, 'pass'>
  readonly heard: Pick<Reports, 'silentFor'>
  /** Measures for how long pods are stopped. */
  readonly stops: Stops
  /** Counts for how long Migrations have looked for a short stop. */
  readonly patience: Patience
}

interface Deps extends ObserveDeps {
  /** In the order in which they choose pods. */
  readonly underWay: readonly UnderWay[]
}

/** Returns all Migrations that are not being deleted, with the facts about them; it reads caches only. */
export function observe(deps: ObserveDeps): readonly MigrationView[] {
  const since = deps.since.pass()
  const seenForMs = (key: string) => deps.clock.monotonic() - (since(key, true) ?? deps.clock.monotonic())
  const present = deps.migrations.list().filter(({ metadata }) => metadata.deletionTimestamp === undefined)
  const uids = new Set(present.map(({ metadata }) => metadata.uid))
  deps.stops.keep(uids)
  deps.patience.keep(uids)
  const underWay = underWayIn(deps, present)
  return present.map(migration => {
    const {
      namespace = '',
      name,
      uid,
      resourceVersion,
      generation = 0,
      creationTimestamp,
    } = migration.metadata
    const wish = parseMigration(migration)
    const { status = {} } = migration
    const isOver = isFinished(migration) || !wish.ok
    const facts = isOver
      ? over
      : factsOf({ ...deps, underWay }, migration, wish.wish, key => seenForMs(`${uid}/${key}`))
    return {
      ...{ namespace, name, uid, resourceVersion, generation, wish, status },
      createdAt: Date.parse(creationTimestamp ?? '') || 0,
      facts:
        facts.type === 'passed' ? { ...facts, downtimeMs: deps.stops.noteServing(uid, facts.serves) } : facts,
    }
  })
}

/** The rules ask for no facts about a Migration that has ended. */
const over: Facts = { type: 'another' }

function factsOf(
  deps: Deps,
  migration: Migration,
  wish: ParsedMigration,
  seenForMs: (key: string) => number,
): Facts {
  const { namespace = '' } = migration.metadata
  const found = migration.status?.source ?? findSource(deps, namespace, wish)
  if ('type' in found) {
    // The times are only for those that may still be shown by a cache.
    return found.type === 'another'
      ? { type: 'another' }
      : { type: found.type, seenForMs: seenForMs(found.type) }
  }
  const leases = presentLeases(deps.leases.by(bySet, `${namespace}/${found.set}`)).map(({ lease }) => lease)
  const lease = leases.find(({ slot }) => slot === found.slot)
  if (lease === undefined) return { type: 'absent', seenForMs: seenForMs('absent') }
  if (lease.holder.uid !== found.uid) return passedTo(deps, wish, lease)
  return heldBy(deps, migration, wish, found, lease, leases)
}

type Unfound = { readonly type: 'absent' | 'another' | 'backup' | 'unkept' }

/** Returns the pod that is to move with its slot, or why there is none. */
function findSource(deps: ObserveDeps, namespace: string, { source }: ParsedMigration): Source | Unfound {
  const pod = deps.pods.get(keyOfRef({ namespace, name: source.name }))
  if (pod === undefined) return { type: 'absent' }
  const { uid } = pod.metadata
  if (source.uid !== undefined && source.uid !== uid) return { type: 'another' }
  if (kindLabelOf(pod) !== 'primary') return { type: 'backup' }
  const set = pod.metadata.labels?.[labels.set]
  const slot = slotOf(pod)
  const node = pod.spec?.nodeName
  if (set === undefined || slot === undefined || node === undefined) return { type: 'unkept' }
  const lease = presentLeases(deps.leases.by(bySet, `${namespace}/${set}`)).find(
    each => each.lease.name === slotLeaseName(set, slot),
  )
  // Without permission the Lease stays, and nothing is saved.
  const isKept = lease?.lease.holder.uid === uid && lease.lease.unsaved !== true
  return isKept ? { uid, node, set, slot } : { type: 'unkept' }
}

function heldBy(
  deps: Deps,
  object: Migration,
  { nodeSelector }: ParsedMigration,
  source: Source,
  lease: NumberedSlotLease,
  ofSet: readonly NumberedSlotLease[],
): Held {
  const { uid: migration } = object.metadata
  const said = reportOf(deps, source.node, lease)
  deps.stops.noteStopping(migration, stopOf(lease, said))
  const isBegun = isUnderWay(object)
  const setKey = `${lease.namespace}/${source.set}`
  const nodes = ableNodes(deps, source, nodeSelector)
  const candidates = deps.pods
    .by(bySet, setKey)
    .filter(({ metadata }) => metadata.deletionTimestamp === undefined)
    .flatMap(pod => {
      const candidate = candidateOf(pod, undefined)
      if (candidate === undefined) return []
      const stage = stageOf(pod)
      const { successorOf } = stage
      // The set has made it the heir of a slot for which it was not made.
      const errandOver = ofSet.some(each => each.heir?.uid === candidate.uid && each.slot !== successorOf)
      return [{ ...candidate, stage: { ...stage, errandOver }, pod }]
    })
  const heirs = new Set(ofSet.map(({ heir }) => heir?.uid))
  const target =
    candidates.find(({ uid }) => uid === lease.handover) ??
    targetsOf(
      { pods: candidates, heirs },
      movingSlots(deps.underWay, setKey, { lease, move: { nodes } }, ofSet),
    ).get(lease.slot) ??
    // It is not replaced: see `withoutTarget`.
    candidates.find(
      ({ kind, node = '', stage: { madeFor, failed } }) =>
        kind === 'hotbackup' && madeFor === migration && failed !== undefined && nodes.has(node),
    )
  const copy = target?.node === undefined ? undefined : reportOf(deps, target.node, lease)
  return {
    type: 'held',
    source,
    isPaused: deps.sets.get(setKey)?.spec.paused === true,
    isSuspended: deps.sets.get(setKey)?.spec.suspend === true,
    isStopping: lease.handover !== undefined,
    target: target && {
      ...targetView(target.pod, target.stage.failed, copy),
      waited: deps.patience.note(
        migration,
        isBegun && hasMemory(copy) ? { target: target.uid, generation: copy.generation } : undefined,
      ),
    },
    restartMs: shortestRestartMs(deps.pods.by(bySet, setKey)),
    nodes: nodes.size,
    saved: savedIn(said),
    silentMs: deps.heard.silentFor(source.node),
  }
}

/** @param said by the node of the primary. */
function stopOf({ handover, handovers }: NumberedSlotLease, said: SlotReport | undefined): Stop | undefined {
  if (handover === undefined) return undefined
  const isOfIt = said?.role === 'source' && said.standsForHandover === handovers
  const seconds = isOfIt ? said.stoodForSeconds : undefined
  return { handover: handovers, stoodMs: seconds === undefined ? undefined : seconds * 1000 }
}

const reportOf = (
  { reports }: Pick<ObserveDeps, 'reports'>,
  node: string,
  lease: NumberedSlotLease,
): SlotReport | undefined => reports.get(node)?.status?.slots.find(slot => isSameSlot(slot, lease))

const hasMemory = (copy: SlotReport | undefined): copy is SlotReport =>
  copy?.usable === 'Frozen' || copy?.usable === 'Staged'

function targetView(
  pod: Pod,
  failed: string | undefined,
  copy: SlotReport | undefined,
): Omit<Target, 'waited'> {
  const scheduled = pod.status?.conditions?.find(({ type }) => type === 'PodScheduled')
  return {
    name: pod.metadata.name,
    uid: pod.metadata.uid,
    node: pod.spec?.nodeName,
    createdAt: Date.parse(pod.metadata.creationTimestamp ?? '') || 0,
    unschedulable:
      pod.spec?.nodeName === undefined && scheduled?.status === 'False'
        ? (scheduled.message ?? 'no node takes it')
        : undefined,
    failed,
    hasMemory: hasMemory(copy),
    impliedDowntimeMs: copy && impliedDowntimeMs(copy),
  }
}

const savedIn = (report: SlotReport | undefined): Saved | undefined =>
  report?.role === 'source'
    ? {
        generation: report.generation,
        bytes: report.bytes,
        obstacle: report.reason === undefined ? undefined : (report.message ?? report.reason),
        handoverPaused: report.handoverPaused,
      }
    : undefined

function passedTo(
  deps: ObserveDeps,
  { nodeSelector }: ParsedMigration,
  { namespace, holder, handedOverBy }: NumberedSlotLease,
): Passed {
  const pod = deps.pods.get(keyOfRef({ namespace, name: holder.name }))
  const isIt = pod?.metadata.uid === holder.uid
  const node = isIt ? deps.nodes.get(pod.spec?.nodeName ?? '') : undefined
  return {
    type: 'passed',
    to: { ...holder, node: isIt ? pod.spec?.nodeName : undefined },
    serves: isIt && kindLabelOf(pod) === 'primary' && stageOf(pod).serving,
    isLoss: handedOverBy === tookOver,
    isOutside: node !== undefined && !hasLabels(node, nodeSelector),
    downtimeMs: undefined,
  }
}
