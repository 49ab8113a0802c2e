import type { OriginOfMemory } from '../../api/backuppodset.ts'
import type { SlotLease } from '../../api/slot-lease.ts'
import { stepsBehind } from '../../succession/age.ts'
import { isKept } from '../../succession/kept.ts'
import { fitsMemory } from '../../succession/kinds.ts'
import type { Option } from '../../succession/match.ts'
import { signersAfter } from '../../succession/signers.ts'
import { newestOf, takenAt, toldOf } from '../memory/age.ts'
import { isGone, isKeptOf, usableOf } from '../memory/knowledge.ts'
import type { Copy, SlotMemory } from '../memory/view.ts'
import type { Action, Origin, Role } from '../plan.ts'
import type { PodView, Snapshot } from '../snapshot.ts'
import { mayTake } from './errands.ts'
import { revisionFor } from './revisions.ts'
import { isGated } from './tools.ts'

/**
 * How good a successor would be, lower is better: the order of the paper (hot, cold; a new pod is nobody's option), and
 * within a kind whoever has the memory at hand. Who would go on with older memory than others have, by more than the one
 * generation that may be on its way, has to fetch theirs first; who has said that it cannot is called after all others.
 * Fractions tell equals apart.
 */
const ranks = {
  ...{ frozen: 0, staged: 1, stale: 2, behind: 3, fetching: 4, cold: 5, coldFetching: 6, stuck: 7 },
} as const

/** Reasons of a report of why nothing newer comes to its node. */
const stuckReasons = new Set(['StoreFull', 'PeerUnreachable', 'PeerSilent', 'PeerKeyDiffers', 'PeerForeign'])

/** From here on a successor needs seconds: what only stands still, or cannot be reached, is not replaced by it. */
export const slowRank = ranks.fetching

/** Which of the pods are to be called now: for as long as newer memory can be had elsewhere, none that cannot fetch it. */
export function callable(s: Snapshot, slot: SlotMemory | undefined, pods: readonly PodView[]): Option[] {
  const options = optionsOf(slot, pods)
  if (slot === undefined || leastFor(slot, s) === undefined) return options
  if (msUntilSourceSays(s, slot) > 0) return []
  return options.filter(({ rank }) => rank < ranks.stuck)
}

/** The word of a death comes some milliseconds before the report in which its node says that its memory can be used, ms. */
const sourceSaysMs = 2_000

/**
 * Ms for which the node of a primary that has just ended is waited for: it has said nothing since, and who has the newest of
 * all others has said that nothing newer comes to it. How much there is to come nobody knows: agents tell progress every ten
 * seconds. Else 0.
 */
function msUntilSourceSays(s: Snapshot, slot: SlotMemory): number {
  const { lease, source, sourceSeenAt, vacantSince } = slot
  if (source === undefined || sourceSeenAt === undefined || vacantSince === undefined) return 0
  const [newest] = [...usableOf(slot)].sort(newestOf(lease))
  const isStuck = newest !== undefined && stuckReasons.has(newest.report.reason ?? '')
  if (source.usable !== undefined || !isKept(source) || !isStuck) return 0
  return Math.max(0, vacantSince + sourceSaysMs - s.monotonicNow)
}

/** Which of the pods could go on stage with this slot's memory. */
export function optionsOf(slot: SlotMemory | undefined, pods: readonly PodView[]): Option[] {
  const usable = usableOf(slot)
  if (slot === undefined || usable.length === 0) return []
  const { lease } = slot
  const told = (copy: Copy) => toldOf(copy, lease)
  const inOrder = [...usable].sort(newestOf(lease))
  // What a silent node has may not be to be had.
  const newest = inOrder.find(({ stale }) => !stale) ?? inOrder[0]
  return pods.flatMap((pod): Option[] => {
    const { uid, node, kind, stage } = pod
    if (!mayTake(pod, slot.lease.slot)) return []
    if (!fitsMemory(stage?.restoreHash, slot.lease.restoreHash)) return []
    const isCold = kind === 'coldbackup'
    const copy = usable.find(each => each.node === node)
    if (copy === undefined) {
      // Its source has it, if nothing but the app has ended.
      const isSource = node !== undefined && node === slot.lease.node ? 0 : 0.5
      return [{ uid, rank: (isCold ? ranks.coldFetching : ranks.fetching) + isSource }]
    }
    const isFrozen = copy.report.usable === 'Frozen' && copy.report.understudyUid === uid
    const behind =
      Math.min(
        99,
        inOrder.findIndex(each => newestOf(lease)(each, copy) === 0),
      ) / 100
    const isBehind = newest !== undefined && stepsBehind(told(copy), told(newest)) > 0
    if (isBehind && stuckReasons.has(copy.report.reason ?? '')) return [{ uid, rank: ranks.stuck + behind }]
    if (isCold) return [{ uid, rank: ranks.cold + behind + (copy.stale ? 0.5 : 0) }]
    // Of equals the heir: that is where connections to the dead pod are sent already.
    const isHeir = lease.heir?.uid === uid ? 0 : 0.001
    if (isBehind) return [{ uid, rank: ranks.behind + behind / 2 + (copy.stale ? 0.495 : 0) + isHeir }]
    return [
      {
        uid,
        rank: (copy.stale ? ranks.stale : 0) + (isFrozen ? ranks.frozen : ranks.staged) + behind + isHeir,
      },
    ]
  })
}

/** Backups that could be called on stage now. A cold one whose gate still starts is further than any that is to be made. */
export const candidatesOf = (hot: readonly PodView[], cold: readonly PodView[]): readonly PodView[] => [
  ...hot.filter(pod => pod.ready && !pod.waking && pod.stage?.failed === undefined),
  ...cold.filter(
    pod => isGated(pod) && pod.node !== undefined && !pod.waking && pod.stage?.failed === undefined,
  ),
]

/**
 * The node of the one that held the slot until now has memory of it, too: also where that one was called, and did not come on
 * stage. A node that is not named throws away what it has, so that tries which fail would use up all copies.
 */
function withSource({ lease, sourceKeeps }: SlotMemory, nodes: readonly string[]): readonly string[] {
  const { node } = lease
  return node !== undefined && !nodes.includes(node) && sourceKeeps ? [...nodes, node] : nodes
}

/** So long a slot without primary waits for somebody who can go on with the newest of its memory, ms; then older is better than none. */
const settlesMs = 120_000

/**
 * What who is called has to go on with at least: the newest that any node could bring back, by what its agent has said just
 * now. Of several tries the last ones are content with less.
 */
export function leastFor(slot: SlotMemory, s: Snapshot): SlotLease['atLeast'] {
  if (slot.vacantSince !== undefined && slot.vacantSince + settlesMs <= s.monotonicNow) return undefined
  const { lease } = slot
  const [newest] = usableOf(slot)
    .filter(({ timely, report }) => timely && (report.epoch ?? lease.epoch) <= lease.epoch)
    .sort(newestOf(lease))
  const { epoch, generation } = newest?.report ?? {}
  return epoch === undefined || generation === undefined ? undefined : { epoch, generation }
}

/** What its Lease asks for, where that is not to be had any more: less. */
export function stillAskedFor(slot: SlotMemory, s: Snapshot): SlotLease['atLeast'] {
  const { atLeast } = slot.lease
  const least = leastFor(slot, s)
  if (atLeast === undefined || least === undefined) return undefined
  const isMore =
    least.epoch > atLeast.epoch || (least.epoch === atLeast.epoch && least.generation > atLeast.generation)
  return isMore ? atLeast : least
}

type Promotion = Extract<Action, { type: 'promote' }>

export function promotion(slot: SlotMemory, pod: PodView, role: Role, s: Snapshot): Promotion {
  const { atLeast: _, ...lease } = slot.lease
  const atLeast = leastFor(slot, s)
  return {
    type: 'promote',
    pod,
    role,
    lease: {
      ...lease,
      ...(atLeast && { atLeast }),
      holder: { name: pod.name, uid: pod.uid },
      epoch: role.epoch,
      node: pod.node,
      ip: pod.stage?.ip,
      heir: undefined,
      holders: withSource(slot, lease.holders).filter(node => node !== pod.node),
      // Also what lies on the node of the one that is called: if it does not come, that is all the same there.
      kept: lease.kept && withSource(slot, lease.kept),
      containers: undefined,
      ending: undefined,
      handover: undefined,
      signers: signersAfter(
        lease,
        { epoch: role.epoch, fingerprint: s.memory?.nodes.get(pod.node ?? '')?.signer },
        isKeptOf(slot),
      ),
    },
    version: slot.resourceVersion,
    origin: originOn(slot, pod, s),
    wake: isGated(pod),
  }
}

/** A promotion that has been decided, by us or by whoever led before, and not come to its end. */
export function unfinished(slot: SlotMemory, pod: PodView, s: Snapshot): Action {
  const { lease } = slot
  const role = { slot: lease.slot, epoch: lease.epoch, replaces: s.lost.get(lease.slot) }
  return {
    type: 'promote',
    pod,
    role,
    lease,
    version: undefined,
    origin: originOn(slot, pod, s),
    wake: isGated(pod),
  }
}

function originOn(slot: SlotMemory, pod: PodView, s: Snapshot): Origin | undefined {
  const here = slot.copies.find(({ node }) => node === pod.node)
  const [newest] = [...usableOf(slot)].sort(newestOf(slot.lease))
  const copy = here ?? newest
  if (copy === undefined) return undefined
  const { report } = copy
  const told = (it: Copy) => toldOf(it, slot.lease)
  // What is too far behind is replaced by what others have.
  const moves = here === undefined || (newest !== undefined && stepsBehind(told(here), told(newest)) > 0)
  const isFrozen = report.usable === 'Frozen' && report.understudyUid === pod.uid
  return {
    how: howOf(pod, here),
    ...{ moves, restores: moves || !isFrozen },
    generation: report.generation,
    bytes: report.bytes ?? 0,
    takenAt: takenAt(copy, s),
    takenAtSource: Date.parse(report.takenAt ?? ''),
  }
}

function howOf({ uid, gate, stage }: PodView, here: Copy | undefined): Exclude<OriginOfMemory, 'Empty'> {
  if (gate === 'starting' || gate === 'waiting') return 'Cold'
  if (stage?.successorOf !== undefined) return 'Created'
  if (here === undefined) return 'Fetched'
  return here.report.usable === 'Frozen' && here.report.understudyUid === uid ? 'Frozen' : 'Staged'
}

/** A pod of the template that the memory fits can be made. */
const canBeMade = (s: Snapshot, { lease: { restoreHash } }: SlotMemory): boolean =>
  fitsMemory(s.restoreHash, restoreHash) || revisionFor(s, restoreHash ?? '') !== undefined

/** A pod that was made for a slot, has a node, and does not hold the stage by then is not waited for alone, ms. */
const arrivalMs = 120_000

/** So many pods are made for one slot; their nodes and we go on trying with these. */
const mostMade = 3
const retryMs = { first: 30_000, most: 600_000 } as const

/**
 * What is to be done for a slot that no backup can take: `make` a pod that can, wait for the one that is `awaited` or for
 * word of who keeps its memory or has just lost its app, or begin `anew` with nothing. Memory that anybody keeps, or may keep, is given up only
 * where the set says after how long.
 */
export function lastResort(
  s: Snapshot,
  slot: SlotMemory,
  hot: readonly PodView[],
): 'make' | 'awaited' | 'anew' {
  if (isGone(slot) || isWornOut(s, slot)) return 'anew'
  if (usableOf(slot).length === 0 || !canBeMade(s, slot) || msUntilSourceSays(s, slot) > 0) return 'awaited'
  const left = msUntilMade(s, slot, hot)
  return left !== undefined && left <= 0 ? 'make' : 'awaited'
}

/** The set says after how long memory that is kept and comes back nowhere is given up, and it has been so long. */
const isWornOut = (s: Snapshot, slot: SlotMemory): boolean => {
  const left = msUntilWornOut(s, slot)
  return left !== undefined && left <= 0
}

function msUntilWornOut({ set, monotonicNow }: Snapshot, { vacantSince }: SlotMemory): number | undefined {
  const afterMs = set.memory?.giveUpAfterMs
  return afterMs === undefined || vacantSince === undefined ? undefined : vacantSince + afterMs - monotonicNow
}

/** Ms until another pod is made for the slot; undefined: one is on its way, or there are enough to try with. */
function msUntilMade(
  s: Snapshot,
  { lease, vacantSince }: SlotMemory,
  hot: readonly PodView[],
): number | undefined {
  const own = hot.filter(({ stage }) => stage?.successorOf === lease.slot)
  if (own.length === 0) return 0
  // One without a node waits for room in the cluster: so would another one.
  const comes = (pod: PodView) =>
    pod.waking || (pod.stage?.failed === undefined && (pod.ready || pod.node === undefined))
  if (own.length >= mostMade || own.some(comes)) return undefined
  const newest = Math.max(...own.map(({ createdAt }) => createdAt))
  const isFailing = own.every(({ stage }) => stage?.failed !== undefined)
  // The longer it has lasted the longer it may last.
  const waited = vacantSince === undefined ? 0 : s.monotonicNow - vacantSince
  const pauseMs = Math.min(retryMs.most, Math.max(isFailing ? retryMs.first : arrivalMs, waited / 2))
  return newest + pauseMs - s.now
}

/** Whether somebody could bring a memory back by now is asked again after so long, ms: silence tells no change. */
const askedAgainMs = 5_000

/** Ms until it is looked again after slots without primary whose memory is kept; undefined where none waits. */
export function untilTried(s: Snapshot): number | undefined {
  const slots = [...(s.memory?.slots.values() ?? [])].filter(
    slot => slot.vacantSince !== undefined && !isGone(slot),
  )
  const hot = s.pods.filter(({ kind }) => kind === 'hotbackup')
  const times = slots.flatMap(slot =>
    [
      usableOf(slot).length === 0 ? askedAgainMs : msUntilMade(s, slot, hot),
      slot.lease.atLeast === undefined ? undefined : askedAgainMs,
      msUntilWornOut(s, slot),
      msUntilSourceSays(s, slot),
    ].filter(ms => ms !== undefined && ms > 0),
  ) as number[]
  return times.length === 0 ? undefined : Math.min(...times)
}

/** Nodes that have the newest memory of a slot that is to be had, the newest first. */
export function nodesWith(slot: SlotMemory): readonly string[] {
  const { lease } = slot
  const copies = [...usableOf(slot)].sort(
    (a, b) => Number(a.stale) - Number(b.stale) || newestOf(lease)(a, b),
  )
  const [newest] = copies
  return copies
    .filter(copy => newest !== undefined && stepsBehind(toldOf(copy, lease), toldOf(newest, lease)) === 0)
    .map(({ node }) => node)
}
