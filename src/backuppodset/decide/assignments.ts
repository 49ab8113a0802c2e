import type { Signer, SlotLease } from '../../api/slot-lease.ts'
import { isEqual } from '../../kube/equal.ts'
import type { Random } from '../../kube/random.ts'
import { stepsBehind } from '../../succession/age.ts'
import { type AssignOptions, assign } from '../../succession/assign.ts'
import { isWanted } from '../../succession/origin.ts'
import { misfit } from '../../succession/placement.ts'
import { signersAfter, signersNow } from '../../succession/signers.ts'
import { newestOf, toldOf } from '../memory/age.ts'
import { endOf, isKeptOf, keptNow } from '../memory/knowledge.ts'
import type { MemoryView, NodeView, SlotMemory } from '../memory/view.ts'
import type { Action } from '../plan.ts'
import type { PodView, Snapshot } from '../snapshot.ts'
import { turnOf } from './handover.ts'
import { stillAskedFor } from './successors.ts'
import { isGivenUp } from './update.ts'

export interface Players {
  /** Primaries that hold their slot and stay. */
  readonly primaries: readonly PodView[]
  readonly understudies: readonly PodView[]
  /** Made for the turn of a slot: each takes that one only. */
  readonly relays: readonly PodView[]
  /** Slots that begin a new life in place: the kubelet has restarted their app. */
  readonly emptied: ReadonlySet<number>
  /** Slots whose primaries are to be ended, because another pod is about to be called. */
  readonly ending: ReadonlySet<number>
}

/** What each slot's Lease should say, where it says something else: who holds it, who would follow, who keeps copies. */
export function assignments(s: Snapshot, memory: MemoryView, random: Random, players: Players): Action[] {
  // On stage: while a promotion is under way its Lease is left to it. And placed: an agent without a node is nobody.
  const holders = players.primaries
    .filter(pod => pod.node !== undefined && pod.slot !== undefined && !pod.waking && !pod.stage?.summoned)
    // The garbage collector is about to delete it: the slot waits for its name.
    .filter(pod => memory.foreign?.has(pod.slot ?? -1) !== true)
    .sort((a, b) => (a.slot ?? 0) - (b.slot ?? 0))
  // Whose memory must not be kept is kept by nobody once that has lasted; until then what is there stays as it is.
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
      onlyFor: players.relays.includes(pod) ? pod.stage?.successorOf : undefined,
      restoreHash: pod.stage?.restoreHash,
    })),
    { copies: isEnded ? 0 : memory.copies, ...spareNodes(s, memory) },
  )
  const turn = turnOf(s)
  return holders.flatMap((pod): Action[] => {
    const slot = pod.slot ?? -1
    const present = memory.slots.get(slot)
    const isSame = present?.lease.holder.uid === pod.uid
    const isEmptied = players.emptied.has(slot)
    const goesOn = isSame && !isEmptied
    const asItIs = goesOn ? { heir: present.lease.heir, holders: present.lease.holders } : undefined
    const cover = isRefused && !isEnded ? asItIs : wanted.get(slot)
    const heir = understudies.find(({ uid }) => uid === cover?.heir?.uid)
    const life = goesOn ? present.lease.life : draw(random, 4)
    // Drawn with the life: what was sealed with another one is not its memory.
    const seal = goesOn ? present.lease.seal : draw(random, 32)
    const epoch = isSame ? Math.max(pod.epoch, present.lease.epoch) : pod.epoch
    const handover = turn?.primary === pod ? turn.successor?.uid : undefined
    const handovers = handoversOf(goesOn ? present.lease : undefined, handover)
    const signers = signersOf(goesOn ? present : undefined, epoch, memory.nodes.get(pod.node ?? '')?.signer)
    const lease: SlotLease = {
      namespace: s.set.namespace,
      set: s.set.name,
      slot,
      life,
      holder: { name: pod.name, uid: pod.uid },
      epoch,
      node: pod.node,
      ip: isSame ? present.lease.ip : undefined,
      heir: heir && { name: heir.name, uid: heir.uid, ip: heir.stage?.ip },
      holders: cover?.holders ?? [],
      kept: goesOn ? keptNow(present, isEnded ? 'nobody' : (cover?.holders ?? []), pod.node) : [],
      containers: goesOn ? containersOf(present, pod) : firstContainersOf(pod),
      ending: players.ending.has(slot) ? pod.uid : undefined,
      restoreHash: pod.stage?.restoreHash,
      handover,
      givenUpFor: goesOn && isGivenUp(s, present) ? present.lease.givenUpFor : undefined,
      ...(isRefused && { unsaved: true }),
      ...(handovers !== undefined && { handovers }),
      ...(seal !== undefined && { seal }),
      ...(signers !== undefined && { signers }),
    }
    if (present !== undefined && isEqual(lease, present.lease)) return []
    // Being replaced by this one, and it serves until this one can.
    const holder = s.pods.find(({ uid }) => uid === present?.lease.holder.uid)
    if (!isSame && holder?.ready && !holder.stage?.died && !pod.ready) return []
    const restarts = (goesOn ? present.restarts : undefined) ?? pod.stage?.restarts ?? 0
    return [
      {
        type: 'assign',
        lease,
        version: present?.resourceVersion,
        restarts,
        stateLost: isEmptied,
        ...(isEmptied && endOf(memory, present)),
      },
    ]
  })
}

/** How many were asked for, with this one: one that begins again, or goes to another successor, is another one. */
const handoversOf = (before: SlotLease | undefined, handover: string | undefined): number | undefined =>
  handover === undefined || handover === before?.handover ? before?.handovers : (before?.handovers ?? 0) + 1

/** Of an understudy its agent says on the pod what it has brought back, and in which containers. */
const firstContainersOf = ({ stage }: PodView): string | undefined =>
  stage?.understudy ? undefined : stage?.containers

/**
 * The containers whose memory the life of this slot is. Where none are named yet and the kubelet has started others since
 * the life began, as while its set was paused, those that run are not its own: that is a death which nobody has told.
 */
const containersOf = (slot: SlotMemory, pod: PodView): string | undefined =>
  slot.lease.containers !== undefined && !pod.stage?.understudy
    ? slot.lease.containers
    : slot.replacedSince === undefined
      ? firstContainersOf(pod)
      : undefined

/** Whose signatures the memory of a slot bears that stays where it is. */
function signersOf(
  present: SlotMemory | undefined,
  epoch: number,
  fingerprint: string | undefined,
): readonly Signer[] | undefined {
  if (present === undefined) return signersNow({ epoch }, fingerprint, true, () => false)
  const { lease, source, copies } = present
  if (epoch !== lease.epoch) return signersAfter(lease, { epoch, fingerprint }, isKeptOf(present))
  // From then on what is not signed is refused: not before somebody has what is.
  const isSigned =
    source?.signed === true
      ? copies.some(({ report }) => report.signed)
      : !source?.generation && copies.length === 0
  return signersNow(lease, fingerprint, isSigned, isKeptOf(present))
}

/**
 * Nodes on which the slot's memory is as new as on any, but for the one generation that may be on its way, and whose agents
 * are there to say so. Only beside these others need not keep theirs: nobody, once the kubelet has started another app in the
 * primary. Its memory is gone, and what the nodes keep is all that there is.
 */
function newestOn(slot: SlotMemory | undefined): readonly string[] {
  if (slot === undefined || slot.replacedSince !== undefined) return []
  const { copies, lease } = slot
  const [newest] = [...copies].sort(newestOf(lease))
  return copies.flatMap(copy =>
    newest !== undefined && copy.timely && stepsBehind(toldOf(copy, lease), toldOf(newest, lease)) === 0
      ? [copy.node]
      : [],
  )
}

/** Nodes on which memory that is made on that one cannot go on. */
function unfitNodes({ nodes }: MemoryView, source: string | undefined): ReadonlySet<string> {
  const from = source === undefined ? undefined : nodes.get(source)?.machine
  if (from === undefined) return new Set()
  const unfit = [...nodes.values()].filter(({ machine }) => machine && misfit(from, machine) !== undefined)
  return new Set(unfit.map(({ name }) => name))
}

/** Nodes that could keep memory although no hot backup is there: first those of cold ones, then all others. */
function spareNodes(s: Snapshot, { nodes }: MemoryView): Omit<AssignOptions, 'copies'> {
  const names = (test: (node: NodeView) => boolean) =>
    [...nodes.values()].filter(test).map(({ name }) => name)
  // Nodes of hot backups are not asked: what runs there may be given the memory in any case.
  const able = names(node => (node.ready || node.away === true) && node.forbidden !== true)
  const cold = new Set(s.pods.flatMap(pod => (pod.kind === 'coldbackup' ? [pod.node] : [])))
  return {
    coldNodes: able.filter(name => cold.has(name)),
    spareNodes: able.filter(name => !cold.has(name)),
    awayNodes: new Set(names(node => !node.ready)),
    forbiddenNodes: new Set(names(node => node.forbidden === true)),
  }
}

export interface Vacancy {
  readonly hot: readonly PodView[]
  /** Slots for which a pod was made, or is. */
  readonly expecting: ReadonlySet<number>
  /** Slots of which a latecomer is to be ended before another pod is called. */
  readonly ending: ReadonlySet<number>
  /** Slots to which a pod is called that is not on stage yet. */
  readonly called: readonly number[]
}

/**
 * Of slots without primary. The node of a pod that was made for one keeps its memory from the moment on in which it is
 * known. Who was called, and could not get the memory that it was to have, is told when that is not to be had any more. Who
 * did not answer in time is told to end as long as somebody else could be called.
 */
export function vacantLeases(s: Snapshot, memory: MemoryView, vacancy: Vacancy): Action[] {
  const { hot, expecting, ending, called } = vacancy
  return [...new Set([...expecting, ...ending, ...called])].flatMap((number): Action[] => {
    const slot = memory.slots.get(number)
    if (slot === undefined) return []
    const { resourceVersion: version, restarts = 0 } = slot
    const { atLeast: before, ...rest } = slot.lease
    const node = hot.find(({ stage }) => stage?.successorOf === number)?.node
    const isExpecting = expecting.has(number)
    const atLeast = isExpecting ? stillAskedFor(slot, s) : before
    const isNew = isExpecting && node !== undefined && !isWanted(rest, node)
    const end = ending.has(number) ? rest.holder.uid : undefined
    // Who tells a death may be gone before it has said what it keeps, and with its pod the word of the death.
    const open = slot.unasked.flatMap(each => (rest.kept?.includes(each.node) === false ? [each.node] : []))
    if (!isNew && isEqual(atLeast, before) && end === rest.ending && open.length === 0) return []
    const holders = isNew ? [node, ...rest.holders] : rest.holders
    const kept = rest.kept && [...rest.kept, ...open]
    const lease: SlotLease = { ...rest, holders, kept, ending: end, ...(atLeast && { atLeast }) }
    return [{ type: 'assign', lease, version, restarts, stateLost: false }]
  })
}

const draw = (random: Random, bytes: number): string => Buffer.from(random.bytes(bytes)).toString('hex')
