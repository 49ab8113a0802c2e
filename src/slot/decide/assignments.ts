import type { Grant } from '../../api/grant.ts'
import { type NumberedSlotLease, slotLeaseName } from '../../api/numbered-slot.ts'
import type { Signer } from '../../api/slot-lease.ts'
import { isEqual } from '../../kube/equal.ts'
import type { Random } from '../../kube/random.ts'
import type { SlotActionOf } from './actions.ts'
import { stepsBehind } from './age.ts'
import { newestOf, toldOf } from './copy-age.ts'
import { fenceOf } from './fence/fence-of.ts'
import { grantedElsewhere, mayBeginAnew, nextGrant } from './grant.ts'
import type { Handover } from './handover.ts'
import { type AssignOptions, assign } from './heirs.ts'
import { endOf, isKeptOf, keptNow } from './knowledge.ts'
import { misfit } from './machine-fit.ts'
import type { MemoryView, NodeView, SlotMemory } from './memory-view.ts'
import type { Owner } from './owner.ts'
import { pastOf } from './past.ts'
import { signersAfter, signersNow } from './signers.ts'
import type { Candidate, SlotSnapshot } from './snapshot.ts'

export interface Players {
  /** Primaries that hold their slot and stay. */
  readonly primaries: readonly Candidate[]
  readonly understudies: readonly Candidate[]
  /** Hot backups made for the turn of one slot: each takes that slot only. */
  readonly relays: readonly Candidate[]
  /** The understudy to which each moving slot goes, by number. Absent: no slot moves. */
  readonly targets?: ReadonlyMap<number, Candidate>
  /** Slots that begin a new incarnation in place: the kubelet has restarted their app, and no memory of it is left. */
  readonly emptied: ReadonlySet<number>
  /** Slots whose primaries are to be terminated, because another pod is about to be called. */
  readonly ending: ReadonlySet<number>
  readonly owner: Pick<Owner, 'namespace' | 'name' | 'uid'>
  /** The handover that is wanted now. */
  readonly turn: Handover | undefined
  /** Slots whose primaries are to be stopped and saved without a successor: each is handed over to itself. Absent: none. */
  readonly saving?: ReadonlySet<number>
  /** Slots whose primaries another pod is to replace, although no agent can stop them. */
  readonly unwanted: ReadonlySet<number>
  /** Slots that get no grant: another pod, or another incarnation, waits for the end of the last one. */
  readonly ungranted: ReadonlySet<number>
  /** True if the owner still gives up the memory that the slot's Lease marks as given up. */
  readonly isGivenUp: (slot: SlotMemory) => boolean
}

/** Returns a write for each slot whose Lease should say something else about its primary, its heir or its holders. */
export function assignments(
  s: SlotSnapshot,
  memory: MemoryView,
  random: Random,
  players: Players,
): SlotActionOf<'writeSlot'>[] {
  // Only primaries on stage: a promotion in progress owns its Lease. And only scheduled ones: without a node no agent
  // acts.
  const holders = players.primaries
    .filter(pod => pod.node !== undefined && pod.slot !== undefined && !pod.waking && !pod.stage?.promoting)
    // The garbage collector is about to delete the Lease of that name: the slot waits.
    .filter(pod => memory.foreign?.has(pod.slot ?? -1) !== true)
    .sort((a, b) => (a.slot ?? 0) - (b.slot ?? 0))
  // Once a refusal has lasted, no node keeps memory; until then the assignments stay as they are.
  const isRefused = memory.refused !== undefined
  const isEnded = isRefused && memory.refusedForLong === true
  const understudies = [...players.understudies, ...players.relays].filter(
    pod => !isEnded && pod.node !== undefined && pod.stage?.failed === undefined,
  )
  const wanted = assign(
    holders.map(pod => {
      const slot = memory.slots.get(pod.slot ?? -1)
      return {
        slot: pod.slot ?? -1,
        node: pod.node,
        heirUid: slot?.lease.heir?.uid,
        // A handover in progress continues: the pod has the last generation, or is about to get it.
        targetUid: slot?.lease.handover ?? players.targets?.get(pod.slot ?? -1)?.uid,
        frozenIn: slot?.copies.find(({ report }) => report.usable === 'Frozen')?.report.understudyUid,
        holders: slot?.lease.holders ?? [],
        newestOn: newestOn(slot),
        mayKeepOn: [
          ...[...(slot?.copies ?? [])].sort(newestOf(slot?.lease ?? { epoch: 0 })),
          ...(slot?.unasked ?? []),
        ].map(({ node }) => node),
        restoreHash: pod.stage?.restoreHash,
        unfitNodes: unfitNodes(memory, pod.node),
      }
    }),
    understudies.map(pod => ({
      ...{ name: pod.name, uid: pod.uid, node: pod.node ?? '' },
      isComing: pod.stage?.containers === undefined,
      onlyFor: players.relays.includes(pod) ? pod.stage?.successorOf : undefined,
      restoreHash: pod.stage?.restoreHash,
    })),
    { copies: isEnded ? 0 : memory.copies, ...spareNodes(s, memory) },
  )
  const { owner, turn } = players
  return holders.flatMap((pod): SlotActionOf<'writeSlot'>[] => {
    const slot = pod.slot ?? -1
    const present = memory.slots.get(slot)
    const isSame = present?.lease.holder.uid === pod.uid
    const isEmptied = players.emptied.has(slot)
    const goesOn = isSame && !isEmptied
    const asItIs = goesOn ? { heir: present.lease.heir, holders: present.lease.holders } : undefined
    const cover = isRefused && !isEnded ? asItIs : wanted.get(slot)
    const heir = understudies.find(({ uid }) => uid === cover?.heir?.uid)
    const incarnation = goesOn ? present.lease.incarnation : draw(random, 4)
    // Drawn with the incarnation: data that was sealed for another one is not the memory of this one.
    const seal = goesOn ? present.lease.seal : draw(random, 32)
    const epoch = isSame ? Math.max(pod.epoch, present.lease.epoch) : pod.epoch
    const handover = players.saving?.has(slot) ? pod.uid : handoverTo(turn, pod, slot, memory)
    const handovers = handoversOf(goesOn ? present : undefined, handover)
    const signers = signersOf(goesOn ? present : undefined, epoch, memory.nodes.get(pod.node ?? '')?.signer)
    const fence = fenceOf(s, present, goesOn ? cover?.holders : 'ends', players.unwanted.has(slot))
    // No pod gets the slot while another one may take it by itself.
    if (!goesOn && present !== undefined && !mayBeginAnew(present)) return []
    const isSameEpoch = goesOn && epoch === present.lease.epoch && !isRefused
    const grant = grantOf(present, isSameEpoch ? heir : undefined, pod, players, memory)
    const lease: NumberedSlotLease = {
      namespace: owner.namespace,
      name: slotLeaseName(owner.name, slot),
      incarnation,
      ...{ group: owner.name, slot, owner: owner.uid },
      ...(present?.lease.policy && { policy: present.lease.policy }),
      holder: { name: pod.name, uid: pod.uid },
      ...{ epoch, node: pod.node, ip: isSame ? present.lease.ip : undefined },
      heir: heir && { name: heir.name, uid: heir.uid, ip: heir.stage?.ip },
      holders: cover?.holders ?? [],
      kept: goesOn ? keptNow(present, isEnded ? 'nobody' : (cover?.holders ?? []), pod.node) : [],
      containers: goesOn ? containersOf(present, pod) : firstContainersOf(pod),
      ending: players.ending.has(slot) ? pod.uid : undefined,
      ...{ restoreHash: pod.stage?.restoreHash, handover },
      givenUpFor: goesOn && players.isGivenUp(present) ? present.lease.givenUpFor : undefined,
      ...(isRefused && { unsaved: true }),
      ...(handovers !== undefined && { handovers }),
      ...pastOf(goesOn ? present : undefined, isRefused, cover?.holders),
      ...{ ...(seal !== undefined && { seal }), ...(signers !== undefined && { signers }) },
      ...{ ...(fence && { fence }), ...(grant && { grant }) },
    }
    if (present !== undefined && isEqual(lease, present.lease)) return []
    // The present primary is being replaced by this pod, and serves until this pod can.
    const holder = s.pods.find(({ uid }) => uid === present?.lease.holder.uid)
    if (!isSame && holder?.ready && !holder.stage?.died && !pod.ready) return []
    const restarts = (goesOn ? present.restarts : undefined) ?? pod.stage?.restarts ?? 0
    return [
      {
        type: 'writeSlot',
        lease,
        version: present?.resourceVersion,
        restarts,
        stateLost: isEmptied,
        ...(handover !== undefined &&
          handovers !== present?.lease.handovers && { requestsHandover: true as const }),
        ...(isEmptied && endOf(memory, present)),
      },
    ]
  })
}

/**
 * Returns the number of handovers requested, with this one. A handover that begins again, or goes to another successor,
 * counts as another one. So does a handover that another leader requested: this process does not know how long ago that
 * was, and so not how long its primary stays stopped.
 */
function handoversOf(present: SlotMemory | undefined, handover: string | undefined): number | undefined {
  const { handover: before, handovers } = present?.lease ?? {}
  const isOurs = handover === before && present?.handoverRequestedAt !== undefined
  return handover === undefined || isOurs ? handovers : (handovers ?? 0) + 1
}

/** Undefined for an understudy: its agent writes the restored memory and its containers on the pod. */
const firstContainersOf = ({ stage }: Candidate): string | undefined =>
  stage?.understudy ? undefined : stage?.containers

/**
 * Returns the containers whose memory is the incarnation of this slot. If the Lease names none yet and the kubelet has started
 * others since the incarnation began, for example while the set was paused, the running containers do not belong to it:
 * the app died, and no agent has reported it.
 */
const containersOf = (slot: SlotMemory, pod: Candidate): string | undefined =>
  slot.lease.containers !== undefined && !pod.stage?.understudy
    ? slot.lease.containers
    : slot.replacedSince === undefined
      ? firstContainersOf(pod)
      : undefined

/** Returns whose signatures the memory of the slot bears. Undefined where no signer is known. */
function signersOf(
  present: SlotMemory | undefined,
  epoch: number,
  fingerprint: string | undefined,
): readonly Signer[] | undefined {
  if (present === undefined) return signersNow({ epoch }, fingerprint, true, () => false)
  const { lease, source, copies } = present
  if (epoch !== lease.epoch) return signersAfter(lease, { epoch, fingerprint }, isKeptOf(present))
  // From then on agents refuse unsigned memory, so a holder must have a signed copy first.
  const isSigned =
    source?.signed === true
      ? copies.some(({ report }) => report.signed)
      : !source?.generation && copies.length === 0
  return signersNow(lease, fingerprint, isSigned, isKeptOf(present))
}

/**
 * Returns the nodes whose copy is as new as any, except for a generation that may be in transit, and whose agents
 * report in time. Other nodes may drop their copies only while such nodes exist. Empty once the kubelet has started
 * another app in the primary: its memory is gone, and the copies on the nodes are all that is left.
 */
function newestOn(slot: SlotMemory | undefined): readonly string[] {
  if (slot === undefined || slot.replacedSince !== undefined) return []
  const { copies, lease, intervalMs } = slot
  const [newest] = [...copies].sort(newestOf(lease))
  return copies.flatMap(copy =>
    newest !== undefined &&
    copy.timely &&
    stepsBehind(toldOf(copy, lease), toldOf(newest, lease), intervalMs) === 0
      ? [copy.node]
      : [],
  )
}

/** Returns the nodes on which memory made on `source` cannot be restored. */
export function unfitNodes({ nodes }: MemoryView, source: string | undefined): ReadonlySet<string> {
  const from = source === undefined ? undefined : nodes.get(source)?.machine
  if (from === undefined) return new Set()
  const unfit = [...nodes.values()].filter(({ machine }) => machine && misfit(from, machine) !== undefined)
  return new Set(unfit.map(({ name }) => name))
}

/** Returns nodes that could keep memory although they have no hot backup: first those of cold ones, then all others. */
function spareNodes(s: SlotSnapshot, { nodes }: MemoryView): Omit<AssignOptions, 'copies'> {
  const names = (test: (node: NodeView) => boolean) =>
    [...nodes.values()].filter(test).map(({ name }) => name)
  // Nodes of hot backups need no such test: a pod of the set runs there and may get the memory in any case.
  const able = names(node => (node.ready || node.away === true) && node.forbidden !== true)
  const cold = new Set(s.pods.flatMap(pod => (pod.kind === 'coldbackup' ? [pod.node] : [])))
  return {
    coldNodes: able.filter(name => cold.has(name)),
    spareNodes: able.filter(name => !cold.has(name)),
    awayNodes: new Set(names(node => !node.ready)),
    forbiddenNodes: new Set(names(node => node.forbidden === true)),
  }
}

/**
 * Returns the uid of the pod to which this primary is to be handed over now. It would be stopped for nothing while the pod
 * has the grant of another slot, and so cannot be called.
 */
function handoverTo(
  turn: Handover | undefined,
  primary: Candidate,
  slot: number,
  memory: MemoryView,
): string | undefined {
  const successor = turn?.primary === primary ? turn.successor?.uid : undefined
  return grantedElsewhere(memory, successor, slot).length > 0 ? undefined : successor
}

/** Returns the grant that the Lease should have. @param heir undefined: nothing but the end of the last one. */
function grantOf(
  present: SlotMemory | undefined,
  heir: Candidate | undefined,
  primary: Candidate,
  { ending, unwanted, ungranted, turn }: Players,
  memory: MemoryView,
): Grant | undefined {
  if (present === undefined) return undefined
  const isForAnother = [ending, unwanted, ungranted].some(slots => slots.has(present.lease.slot))
  // A pod can take one slot only. If it had the grant of one of its slots, the others would wait for the end of that.
  const { slot } = present.lease
  const isElsewhere =
    grantedElsewhere(memory, heir?.uid, slot).length > 0 ||
    // It is about to take another slot.
    (turn !== undefined && turn.successor?.uid === heir?.uid && turn.slot.lease.slot !== slot) ||
    [...memory.slots.values()].some(({ lease }) => lease.slot !== slot && lease.heir?.uid === heir?.uid)
  const isServed = primary.ready && primary.stage?.died !== true
  return nextGrant(
    present,
    memory.grantee === undefined || isElsewhere || isForAnother || turn?.primary === primary
      ? undefined
      : heir,
    { isServed, isAnnounced: memory.grantee === 'Announced' },
  )
}

export const draw = (random: Random, bytes: number): string =>
  Buffer.from(random.bytes(bytes)).toString('hex')
