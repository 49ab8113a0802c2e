import { type SlotLease, tookOver } from '../../api/slot-lease.ts'
import type { OriginOfMemory } from '../../api/slot-status.ts'
import type { Origin, Role, SlotActionOf } from './actions.ts'
import { isNewerTold, stepsBehind } from './age.ts'
import { newestOf, takenAt, toldOf } from './copy-age.ts'
import { mayTake } from './errands.ts'
import { fenceOfSuccessor } from './fence/voters.ts'
import { grantOfSuccessor, mayCall, usedHeirOf } from './grant.ts'
import { fitsMemory } from './kinds.ts'
import { isKeptOf, keepersOf, usableOf } from './knowledge.ts'
import type { Option } from './match.ts'
import type { Copy, SlotMemory } from './memory-view.ts'
import { signersAfter } from './signers.ts'
import { type Candidate, isGated, type SlotSnapshot } from './snapshot.ts'
import { hasAll, msUntilSourceSays } from './source-says.ts'
import { reportsStuck } from './stuck.ts'

/**
 * How good a successor would be, lower is better: the order of the paper (hot, cold; a new pod is never an option), and
 * within a kind pods that have the memory at hand come first. A pod whose copy is older than another, by more than a
 * generation that may be in transit, has to fetch the newer one first; a pod whose node has reported that it cannot
 * is called after all others. Fractions tell equals apart.
 */
const ranks = {
  ...{ frozen: 0, staged: 1, stale: 2, behind: 3, fetching: 4, cold: 5, coldFetching: 6, stuck: 7 },
} as const

/** From this rank on a successor needs seconds: it does not replace a primary that is only stopped or unreachable. */
export const slowRank = ranks.fetching

/** True if the pod has the memory already, by a recent report of its agent. */
export const isAtHand = ({ rank }: Option): boolean => rank < ranks.stale

/**
 * Returns the pods that may be called now: while another node has newer memory, no pod that cannot fetch it; while a grant
 * is outstanding, only its heir. A heir that has used its grant has the slot, whatever else there is.
 */
export const callable = (
  s: SlotSnapshot,
  slot: SlotMemory | undefined,
  pods: readonly Candidate[],
): Option[] => optionsBy(s, slot, pods, uid => mayCall(slot, uid))

/** Returns the same pods, and those that a grant keeps from the slot which the operator can end alone. */
export const callableWithoutGrant = (
  s: SlotSnapshot,
  slot: SlotMemory,
  pods: readonly Candidate[],
): Option[] => optionsBy(s, slot, pods, uid => mayCall(slot, uid) || slot.lease.grant?.isAnnounced === true)

function optionsBy(
  s: SlotSnapshot,
  slot: SlotMemory | undefined,
  pods: readonly Candidate[],
  isCallable: (uid: string) => boolean,
): Option[] {
  const used = usedHeirOf(slot)
  if (used !== undefined) return pods.flatMap(({ uid }) => (uid === used.uid ? [{ uid, rank: 0 }] : []))
  const waits = slot !== undefined && msUntilSourceSays(s, slot) > 0
  // A pod that has all of it, as far as is known, is the best choice whatever the others lack.
  const able = waits ? pods.filter(({ node }) => hasAll(slot, node)) : pods
  const options = optionsOf(slot, able).filter(({ uid }) => isCallable(uid))
  if (waits) return options.filter(isAtHand)
  if (slot === undefined || leastFor(slot, s) === undefined) return options
  return options.filter(({ rank }) => rank < ranks.stuck)
}

/** Returns the pods that could take the slot with its memory. */
export function optionsOf(slot: SlotMemory | undefined, pods: readonly Candidate[]): Option[] {
  const usable = usableOf(slot)
  if (slot === undefined || usable.length === 0) return []
  const { lease, intervalMs } = slot
  const told = (copy: Copy) => toldOf(copy, lease)
  const inOrder = [...usable].sort(newestOf(lease))
  // The copy of a silent node may be out of reach.
  const newest = inOrder.find(({ stale }) => !stale) ?? inOrder[0]
  return pods.flatMap((pod): Option[] => {
    const { uid, node, kind, stage } = pod
    if (!mayTake(pod, slot.lease.slot)) return []
    if (!fitsMemory(stage?.restoreHash, slot.lease.restoreHash)) return []
    const isCold = kind === 'coldbackup'
    const copy = usable.find(each => each.node === node)
    if (copy === undefined) {
      // The source still has the memory if only the app has ended.
      const isSource = node !== undefined && node === slot.lease.node ? 0 : 0.5
      return [{ uid, rank: (isCold ? ranks.coldFetching : ranks.fetching) + isSource }]
    }
    const isFrozen = copy.report.usable === 'Frozen' && copy.report.understudyUid === uid
    const behind =
      Math.min(
        99,
        inOrder.findIndex(each => newestOf(lease)(each, copy) === 0),
      ) / 100
    const isBehind = newest !== undefined && stepsBehind(told(copy), told(newest), intervalMs) > 0
    if (isBehind && reportsStuck(copy)) return [{ uid, rank: ranks.stuck + behind }]
    if (isCold) return [{ uid, rank: ranks.cold + behind + (copy.stale ? 0.5 : 0) }]
    // Among equals the heir comes first: connections to the dead pod are redirected there already.
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

/**
 * Returns the backups that could be called now. A cold backup whose gate is still starting counts: it is further along
 * than a pod that is yet to be made.
 */
export const candidatesOf = <Pod extends Candidate>(
  hot: readonly Pod[],
  cold: readonly Pod[],
): readonly Pod[] => [
  ...hot.filter(pod => pod.ready && !pod.waking && pod.stage?.failed === undefined),
  ...cold.filter(
    pod => isGated(pod) && pod.node !== undefined && !pod.waking && pod.stage?.failed === undefined,
  ),
]

/**
 * The node of the last pod that held the slot has memory of it, too, even if that pod was called and did not come on
 * stage. A node that the Lease does not name discards its memory, so that failed attempts would use up all copies.
 */
function withSource({ lease, sourceKeeps }: SlotMemory, nodes: readonly string[]): readonly string[] {
  const { node } = lease
  return node !== undefined && !nodes.includes(node) && sourceKeeps ? [...nodes, node] : nodes
}

/**
 * How long a slot without primary waits for a pod that can continue with its newest memory, ms; after that, older
 * memory is better than none.
 */
const settlesMs = 120_000

/**
 * Returns what the called pod must have at least: the newest memory that any node can restore, by the recent reports of
 * the agents. Undefined after a while, so that the last of several attempts accept less.
 */
export function leastFor(slot: SlotMemory, s: SlotSnapshot): SlotLease['atLeast'] {
  if (slot.endedSince !== undefined && slot.endedSince + settlesMs <= s.monotonicNow) return undefined
  const { lease } = slot
  const [newest] = usableOf(slot)
    .filter(({ timely, report }) => timely && (report.epoch ?? lease.epoch) <= lease.epoch)
    .sort(newestOf(lease))
  const { epoch, generation, takenAt = '' } = newest?.report ?? {}
  return epoch === undefined || generation === undefined
    ? undefined
    : { epoch, generation, takenAt: Date.parse(takenAt) || 0 }
}

/** Returns what the slot's Lease asks for, or less if that is not available any more. */
export function stillAskedFor(slot: SlotMemory, s: SlotSnapshot): SlotLease['atLeast'] {
  const { atLeast } = slot.lease
  const least = leastFor(slot, s)
  if (atLeast === undefined || least === undefined) return undefined
  return isNewerTold(least, atLeast) ? atLeast : least
}

/**
 * Returns what a called pod that is not on stage yet must have: more than the Lease asks for, if a node has reported
 * newer memory since. A node reports the last generation of a dead primary some milliseconds after the death is known.
 * A Lease that asks for nothing was written while no report was recent.
 */
export function nowAskedFor(slot: SlotMemory, s: SlotSnapshot): SlotLease['atLeast'] {
  const { atLeast } = slot.lease
  const least = leastFor(slot, s)
  const isMore =
    least !== undefined && (atLeast === undefined || stepsBehind(atLeast, least, slot.intervalMs) > 0)
  return isMore ? least : atLeast
}

type Promotion = SlotActionOf<'promote'>

export function promotion(slot: SlotMemory, pod: Candidate, role: Role, s: SlotSnapshot): Promotion {
  const { atLeast: _, fence: before, grant: __, ...present } = slot.lease
  const { handedOverBy: ___, suspended: ____, ...lease } = present
  const grant = grantOfSuccessor(slot, pod.uid)
  const atLeast = leastFor(slot, s)
  const fence = fenceOfSuccessor(before)
  return {
    type: 'promote',
    pod,
    role,
    lease: {
      ...lease,
      ...(atLeast && { atLeast }),
      ...(fence && { fence }),
      ...(grant && { grant }),
      holder: { name: pod.name, uid: pod.uid },
      epoch: role.epoch,
      node: pod.node,
      ip: pod.stage?.ip,
      heir: undefined,
      holders: withSource(slot, lease.holders).filter(node => node !== pod.node),
      // Includes the copy on the node of the called pod: if that pod does not come, the copy is still on its node.
      kept: keepersOf(slot),
      containers: undefined,
      ending: undefined,
      handover: undefined,
      handedOverBy: tookOver,
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

/** Continues a promotion that this leader or an earlier one has decided and that has not ended. */
export function unfinished(slot: SlotMemory, pod: Candidate, s: SlotSnapshot): Promotion {
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

function originOn(slot: SlotMemory, pod: Candidate, s: SlotSnapshot): Origin | undefined {
  const here = slot.copies.find(({ node }) => node === pod.node)
  const [newest] = [...usableOf(slot)].sort(newestOf(slot.lease))
  const copy = here ?? newest
  if (copy === undefined) return undefined
  const { report } = copy
  const told = (it: Copy) => toldOf(it, slot.lease)
  // A newer copy from another node replaces a copy that is too far behind.
  const moves =
    here === undefined || (newest !== undefined && stepsBehind(told(here), told(newest), slot.intervalMs) > 0)
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

function howOf({ uid, gate, stage }: Candidate, here: Copy | undefined): Exclude<OriginOfMemory, 'Empty'> {
  if (gate === 'starting' || gate === 'waiting') return 'Cold'
  if (stage?.successorOf !== undefined) return 'Created'
  if (here === undefined) return 'Fetched'
  return here.report.usable === 'Frozen' && here.report.understudyUid === uid ? 'Frozen' : 'Staged'
}

/** Returns the nodes that have the newest available memory of a slot, the newest first. */
export function nodesWith(slot: SlotMemory): readonly string[] {
  const { lease, intervalMs } = slot
  const copies = [...usableOf(slot)].sort(
    (a, b) => Number(a.stale) - Number(b.stale) || newestOf(lease)(a, b),
  )
  const [newest] = copies
  return copies
    .filter(
      copy =>
        newest !== undefined && stepsBehind(toldOf(copy, lease), toldOf(newest, lease), intervalMs) === 0,
    )
    .map(({ node }) => node)
}
