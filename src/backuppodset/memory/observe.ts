import { labels } from '../../api/labels.ts'
import { memoryNotAllowed } from '../../api/memory-permission.ts'
import type { NodeReport } from '../../api/node-report.ts'
import type { ParsedSet } from '../../api/parse.ts'
import { kindLabelOf } from '../../api/pod-kind.ts'
import { reasons } from '../../api/reasons.ts'
import { parseSetSlotLease, type SetSlotLease } from '../../api/set-slot.ts'
import { isSameSlot } from '../../api/slot-key.ts'
import { restartsOf } from '../../api/slot-lease.ts'
import type { Clock } from '../../kube/clock.ts'
import type { Lease, Node, Pod } from '../../kube/resources.ts'
import type { Store } from '../../kube/store.ts'
import { isKept } from '../../succession/kept.ts'
import { isNamed } from '../../succession/origin.ts'
import { isFinished } from '../lost-primaries.ts'
import type { ClaimReader } from './claim-reader.ts'
import { claimCaveats, claimInTheWay } from './claims.ts'
import { diskCaveats } from './disk.ts'
import { environmentCaveats } from './environment.ts'
import type { HandoverRequests } from './handover-requests.ts'
import { holderCaveats } from './holders.ts'
import { keepsAtSource, unaskedOf } from './knowledge.ts'
import { mayRunOn, nodeFacts } from './may-run-on.ts'
import { type Reports, staleMs } from './reports.ts'
import type { Since } from './since.ts'
import { stageOf } from './stage.ts'
import type { Copy, MemoryView, NodeView, SlotMemory, StageView } from './view.ts'

/** Index of slot Leases by the set that their label names, `namespace/set`. */
export const bySet = 'set'

export const leaseIndexes: Readonly<Record<string, (lease: Lease) => readonly string[]>> = {
  [bySet]: lease => {
    const set = lease.metadata.labels?.[labels.set]
    return set === undefined ? [] : [`${lease.metadata.namespace}/${set}`]
  },
}

export interface MemoryDeps {
  readonly leases: Store<Lease>
  readonly reports: Reports
  /** Undefined: there is no such node, or not yet. An agent that reports from it has no labels and taints then. */
  readonly nodeOf: (name: string) => Node | undefined
  readonly clock: Clock
  /** True for a pod whose deletion the API server has accepted from us. */
  readonly isDeleted: (uid: string) => boolean
  readonly claims: Pick<ClaimReader, 'of'>
  /** True if an administrator allows memory in this namespace. */
  readonly isPermitted: (namespace: string) => boolean
  readonly since: Pick<Since, 'pass'>
  readonly handoverRequests: Pick<HandoverRequests, 'requestedAt'>
}

/**
 * A node whose agent could keep memory this recently stays a holder: an update of the agents must not move copies
 * about, ms.
 */
const awayMs = 300_000

/**
 * An agent writes at least every ten seconds. An agent that has not written for this long could not have withdrawn its
 * report, ms.
 */
const timelyMs = 12_000

/**
 * Time after which a pod that is being deleted has been killed, counted from the end of its grace period: its node may
 * report the end late, ms. Both times count from when this process first saw the deletion, because the deletion's own
 * timestamp is by the clock of the API server.
 */
const afterGraceMs = 2_000

/** The grace period if the API server reports none, seconds. */
const usualGrace = 30

/**
 * A claim that is recreated, or a label that is put back, costs no memory: memory that must not be kept stays for this
 * long, ms.
 */
const refusalMs = 300_000

export interface SlotLeaseObject {
  readonly lease: SetSlotLease
  readonly object: Lease
}

/**
 * Returns the Leases of the slots of this very set. The label alone proves nothing: a set of the same name may have
 * been deleted, and the garbage collector may be slower than the client that creates a new one. A Lease without any
 * owner was orphaned on purpose, with its pods (`--cascade=orphan`), and is adopted as they are: the next write gives
 * it its owner.
 */
export const slotLeasesOf = (leases: Store<Lease>, set: SetName): readonly SlotLeaseObject[] =>
  own(presentLeases(leasesNamed(leases, set)), set)

/**
 * Returns the Leases of slots for which no operator makes a pass any more, although agents would still expect successors by
 * their policy: those of a deleted set, and those of a set that is being deleted.
 *
 * @param uid of the set that has this name now; undefined: there is none that stays.
 */
export const abandonedLeases = (
  leases: Store<Lease>,
  { namespace, name }: Pick<SetName, 'namespace' | 'name'>,
  uid: string | undefined,
): readonly SlotLeaseObject[] =>
  presentLeases(
    leasesNamed(leases, { namespace, name }).filter(lease => uid === undefined || isForeign(lease, { uid })),
  ).filter(({ lease: { policy } }) => policy?.paused === false)

const own = (present: readonly SlotLeaseObject[], set: SetName): readonly SlotLeaseObject[] =>
  present.filter(({ object }) => !isForeign(object, set))

type SetName = Pick<ParsedSet, 'namespace' | 'name' | 'uid'>

const leasesNamed = (leases: Store<Lease>, { namespace, name }: Omit<SetName, 'uid'>): readonly Lease[] =>
  leases.by(bySet, `${namespace}/${name}`)

const presentLeases = (objects: readonly Lease[]): readonly SlotLeaseObject[] =>
  objects.flatMap(object => {
    const lease = parseSetSlotLease(object)
    return lease === undefined || object.metadata.deletionTimestamp !== undefined ? [] : [{ lease, object }]
  })

const isForeign = ({ metadata: { ownerReferences = [] } }: Lease, { uid }: Pick<SetName, 'uid'>): boolean =>
  ownerReferences.length > 0 && ownerReferences.every(owner => owner.uid !== uid)

/** Returns what Leases and reports say about a set's slots. */
export function observeMemory(
  set: ParsedSet & { readonly memory: NonNullable<ParsedSet['memory']> },
  podByUid: (uid: string) => Pod | undefined,
  deps: MemoryDeps & { readonly stageOf?: typeof stageOf },
): MemoryView {
  const setKey = `${set.namespace}/${set.name}`
  const told = deps.reports.ofSet(setKey)
  const present = presentLeases(leasesNamed(deps.leases, set))
  const since = deps.since.pass(setKey)
  const isFresh = (node: string) => deps.reports.silentFor(node) <= staleMs
  const wasHeardSince = (node: string, at: number) =>
    deps.reports.silentFor(node) <= deps.clock.monotonic() - at
  const isTimely = (node: string) =>
    deps.reports.silentFor(node) <= timelyMs && deps.reports.knows(node) !== false
  const ours = own(present, set)
  const claims = deps.claims.of(set)
  const isAssigned = ours.some(({ lease }) => lease.holders.length > 0)
  const refused = deps.isPermitted(set.namespace)
    ? claimInTheWay(claims, isAssigned)
    : { reason: reasons.memoryNotAllowed, message: memoryNotAllowed }
  const refusedAt = since('refused', refused !== undefined)
  const refusedForLong = refusedAt !== undefined && deps.clock.monotonic() - refusedAt >= refusalMs
  const slots = ours.map(({ lease, object }): [number, SlotMemory] => {
    const holder = podByUid(lease.holder.uid)
    const stage = holder && (deps.stageOf ?? stageOf)(holder)
    const here = told.filter(({ node, slot }) => isSameSlot(slot, lease) && isNamed(lease, node))
    const { uid, resourceVersion } = object.metadata
    const restarts = restartsOf(object)
    const runsAnother = isReplaced(holder, stage, lease, restarts)
    // Then the node of the last primary is a node like any other: it has the memory that was saved there, and the
    // memory with which the successor was to continue. Perhaps no other node has any.
    const isVacant = runsAnother || !isOnStage(holder, stage, deps)
    const vacantAt = since(`empty/${uid}/${lease.incarnation}`, isVacant)
    const isAsked = isVacant && !refusedForLong
    const isCalled = stage?.understudy === true && !stage.serving && kindLabelOf(holder) !== 'primary'
    // A node that had the previous primary has its memory, whether or not its agent has read the Lease since.
    const isHolders = ({ node, slot }: (typeof here)[number]) => slot.role === 'holder' || node !== lease.node
    const copies = here
      .filter(each => (isHolders(each) || isAsked) && isKept(each.slot))
      .map(
        ({ node, slot, seenAt }): Copy => ({
          node,
          report: slot,
          seenAt,
          stale: !isFresh(node) || deps.reports.knows(node) === false,
          silent: !isFresh(node),
          timely: isTimely(node),
        }),
      )
      .sort((a, b) => (a.node < b.node ? -1 : 1))
    const answers = deps.reports.all().map(({ metadata: { name: node }, status }) => ({
      node,
      status,
      report: here.find(each => each.node === node)?.slot,
      // A report from while the primary ran may be older than the node's first generation.
      fresh: isFresh(node) && (vacantAt === undefined || wasHeardSince(node, vacantAt)),
    }))
    const source = here.find(({ node, slot }) => slot.role === 'source' && node === lease.node)
    const mayFetch = (node: string) => {
      const isLetGo = !lease.holders.includes(node)
      const letGoAt = since(`let-go/${uid}/${lease.incarnation}/${node}`, isLetGo)
      // Its agent mentions a slot without a copy until it has read that, and its fetch has ended.
      const isMentioned = here.some(each => each.node === node)
      return isFresh(node) && (letGoAt === undefined || isMentioned || !wasHeardSince(node, letGoAt))
    }
    const fetching = [...new Set([...lease.holders, ...(lease.kept ?? [])])].filter(
      node => node !== lease.node && !copies.some(copy => copy.node === node) && mayFetch(node),
    )
    return [
      lease.slot,
      {
        lease,
        uid,
        resourceVersion,
        restarts,
        intervalMs: set.memory.intervalMs,
        replacedSince: since(`replaced/${uid}/${lease.incarnation}/${lease.epoch}`, runsAnother),
        // No slot waits for a primary if the set has no place for it.
        vacantSince: since(
          `vacant/${uid}/${lease.incarnation}`,
          lease.retainedSince === undefined && isVacant,
        ),
        retainedSeenAt: since(`retained/${uid}/${lease.retainedSince}`, lease.retainedSince !== undefined),
        holderGoesBy: goesBy(holder, stage, deps, since),
        source: source?.slot,
        sourceKeeps:
          !refusedForLong &&
          keepsAtSource(
            lease,
            answers.find(({ node }) => node === lease.node),
          ),
        sourceSeenAt: source && isTimely(source.node) ? source.seenAt : undefined,
        endingSince: since(
          `ending/${uid}/${lease.incarnation}/${lease.epoch}`,
          lease.ending === lease.holder.uid,
        ),
        calledSince: since(`called/${uid}/${lease.incarnation}/${lease.epoch}`, isCalled),
        comingSince: since(`coming/${uid}/${lease.incarnation}`, isCalled),
        handoverRequestedAt: deps.handoverRequests.requestedAt(lease),
        settledSince: since(
          `settled/${uid}/${lease.incarnation}/${lease.epoch}`,
          lease.handover === undefined,
        ),
        copies,
        fetching,
        unasked: unaskedOf(lease, answers, {
          isVacant: isAsked,
          isDeath: stage?.died === true,
          isLong: vacantAt !== undefined && deps.clock.monotonic() - vacantAt >= awayMs,
        }),
      },
    ]
  })
  const nodes = new Map(
    deps.reports
      .all()
      .map(report => {
        const { name } = report.metadata
        const forbidden =
          set.memory.matchingHolders && !mayRunOn(set.template.spec, nodeFacts(name, deps.nodeOf(name)))
        return [name, { ...nodeView(report, deps.reports), forbidden }] as const
      })
      .sort(),
  )
  return {
    slots: new Map(slots.sort(([a], [b]) => a - b)),
    copies: set.memory.copies,
    giveUpAfterMs: set.memory.giveUpAfterMs,
    retainMs: set.memory.retainMs,
    nodes,
    foreign: new Set(present.flatMap(({ lease, object }) => (isForeign(object, set) ? [lease.slot] : []))),
    refused,
    refusedForLong,
    caveats: [
      ...(set.memory.disk
        ? diskCaveats(
            slots.map(([, slot]) => slot),
            nodes,
          )
        : []),
      ...holderCaveats(
        slots.map(([, { lease }]) => lease),
        set.memory.copies,
        nodes,
      ),
      ...claimCaveats(claims),
      ...environmentCaveats(set.template, set.memory.containers),
    ],
  }
}

/**
 * True if the primary runs other containers than those whose memory this incarnation is. Container ids tell; if a Lease has
 * none, the restart counter does.
 */
function isReplaced(
  pod: Pod | undefined,
  stage: StageView | undefined,
  lease: SetSlotLease,
  restarts: number | undefined,
): boolean {
  if (pod === undefined || stage === undefined) return false
  if (pod.metadata.deletionTimestamp !== undefined || isFinished(pod)) return false
  // In an understudy the containers are older than the app in them: its agent reports in which containers it was
  // restored.
  if (stage.understudy) return stage.replaced
  if (lease.containers !== undefined)
    return stage.containers !== undefined && stage.containers !== lease.containers
  return restarts !== undefined && stage.restarts > restarts
}

/** True if the pod continues with the memory of its slot, as far as its conditions say. */
function isOnStage(pod: Pod | undefined, stage: StageView | undefined, { isDeleted }: MemoryDeps): boolean {
  if (pod === undefined || stage === undefined) return false
  if (isFinished(pod) || isDeleted(pod.metadata.uid)) return false
  const { understudy, serving, died } = stage
  return pod.metadata.deletionTimestamp === undefined && !died && (!understudy || serving)
}

/**
 * Returns until when to wait for the report that a primary which is being deleted has stopped, monotonic ms. Its grace
 * period begins when its kubelet hears of the deletion. A silent node may be cut off: then the grace period counts from
 * the first report of its agent. Without a report Kubernetes decides, by making the node's pods unready.
 */
function goesBy(
  pod: Pod | undefined,
  stage: StageView | undefined,
  { isDeleted, clock, reports }: MemoryDeps,
  since: ReturnType<Since['pass']>,
): number | undefined {
  if (pod === undefined || stage === undefined || isFinished(pod) || stage.died) return undefined
  // A pod that was called and never came on stage, such as a cold backup whose gate stayed silent, has no app to stop
  // first.
  const { understudy, serving } = stage
  if (understudy && !serving && kindLabelOf(pod) !== 'primary') return undefined
  const { deletionTimestamp, deletionGracePeriodSeconds: grace = usualGrace, uid } = pod.metadata
  const node = pod.spec?.nodeName
  const now = clock.monotonic()
  // A client may shorten the grace period later: the kubelet hears of that when we do.
  const at = since(`going/${uid}/${grace}`, deletionTimestamp !== undefined)
  if (at === undefined) return isDeleted(uid) ? now + afterGraceMs : undefined
  const lastsMs = grace * 1000 + afterGraceMs
  const heardAt = since(`heard/${uid}/${grace}`, node !== undefined && reports.silentFor(node) < now - at)
  if (!stage.selectable || node === undefined) return at + lastsMs
  return heardAt === undefined ? Math.max(at + lastsMs, now + afterGraceMs) : heardAt + lastsMs
}

function nodeView(report: NodeReport, reports: Reports): NodeView {
  const { name } = report.metadata
  const failing = report.status?.checks.find(check => !check.ok)
  const silent = reports.silentFor(name) > staleMs
  return {
    name,
    ready: report.status?.ready === true && !silent,
    away: (report.status?.ready !== true || silent) && reports.unableFor(name) < awayMs,
    problem: silent
      ? `its agent has been silent for more than ${staleMs / 1000} s: see the log of its pod`
      : failing && `${failing.name}: ${failing.message}${failing.cure ? `; ${failing.cure}` : ''}`,
    machine: report.status,
    signer: report.status?.signs === true ? report.status.fingerprint : undefined,
    diskTrouble: report.status?.disk?.reason,
  }
}
