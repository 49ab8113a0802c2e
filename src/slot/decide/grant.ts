/**
 * The operator's side of grants: which pod may take a slot without it, and whether another pod may be called. A grant is
 * outstanding until one of the two agents that its use needs has said that it never uses it. Meanwhile the slot goes to no
 * other pod.
 */
import type { Grant, GrantHeir, GrantWord } from '../../api/grant.ts'
import type { SlotLease } from '../../api/slot-lease.ts'
import type { SlotActionOf } from './actions.ts'
import type { GrantState, OutstandingGrant } from './grant-state.ts'
import type { SlotMemory } from './memory-view.ts'
import type { PodRef } from './pod-ref.ts'
import type { Candidate, SlotSnapshot } from './snapshot.ts'

/**
 * The pod that a grant names, as far as this process knows. `Over`: it certainly does not run with the memory. `NodeLost`:
 * Kubernetes has given up its node, which may only be cut off.
 */
export type HeirState = 'Waits' | 'OnStage' | 'NodeLost' | 'Over'

/** The words on the pod of an heir about announced grants. */
export interface SaidOnPod {
  /** The operator has ended all grants of this incarnation up to this number; 0: none. */
  readonly over: number
  /** An agent has told that the pod resumes, or serves. */
  readonly isTold: boolean
  /** Absent: the API server has no such pod. */
  readonly pod?: PodRef
}

export interface SaidOfGrants {
  /** Words of agents about this incarnation of the slot, by node; only of nodes that its Lease names. */
  readonly words: ReadonlyMap<string, GrantWord>
  readonly heirState: (heir: GrantHeir) => HeirState
  readonly onPod: (heir: GrantHeir) => SaidOnPod
  /** The agent of the primary's node has written nothing for longer than it may. */
  readonly isSourceSilent: boolean
}

/** The grants of a slot, as they follow from its Lease and from what is said of them. */
export function grantStateOf(lease: SlotLease, said: SaidOfGrants): GrantState {
  const numbers = [...said.words.values()].flatMap(({ closed, used = 0 }) => [closed, used])
  return {
    words: said.words,
    nextNumber: 1 + Math.max(lease.grant?.number ?? 0, ...numbers),
    outstanding: outstandingOf(lease, said),
  }
}

function outstandingOf(
  { grant, holder, node = '' }: SlotLease,
  { words, heirState, onPod, isSourceSilent }: SaidOfGrants,
): OutstandingGrant | undefined {
  if (grant?.heir === undefined) return undefined
  const { heir, number, source, isAnnounced = false } = grant
  const { over, isTold, pod } = onPod(heir)
  if (isAnnounced && over >= number) return undefined
  const isRecorded = holder.uid === heir.uid
  const state = heirState(heir)
  if (state === 'Over' || (isRecorded && state === 'OnStage')) return undefined
  // In the next epoch the node of the primary is that of the heir.
  const [said, agreed] = [words.get((isRecorded ? source : node) ?? ''), words.get(heir.node)]
  if (isClosed(agreed, number)) return undefined
  const isAgreed = agreed?.used === number
  if (!isAgreed && isClosed(said, number)) return undefined
  // An heir that has used its grant has read no Lease with voters, so nothing stops it while its node is cut off. One that announces
  // itself leaves a word at the API server, so that decides, and no clock.
  if (state === 'NodeLost' && !isAnnounced && !isAgreed && said?.used !== number) return undefined
  // One node takes no slot from a primary of another one: the word of the heir's agent alone counts only if that of the primary
  // says nothing.
  const mayRun = !isAnnounced || isTold
  const isUsed = mayRun && (said?.used === number || (isAgreed && (said === undefined || isSourceSilent)))
  return { heir, isUsed: !isRecorded && isUsed, ...(isAnnounced && !isTold && pod && { untold: pod }) }
}

const isClosed = (word: GrantWord | undefined, number: number): boolean =>
  word !== undefined && word.closed >= number && word.used !== number

/** The heir that has the slot already by a grant, although the Lease does not say so yet. */
export const usedHeirOf = (slot: Pick<SlotMemory, 'grants'> | undefined): GrantHeir | undefined =>
  slot?.grants?.outstanding?.isUsed === true ? slot.grants.outstanding.heir : undefined

/** True if this pod may be called to the slot: no other pod can take it by itself. */
export function mayCall(slot: Pick<SlotMemory, 'grants'> | undefined, uid: string): boolean {
  const outstanding = slot?.grants?.outstanding
  return outstanding === undefined || outstanding.heir.uid === uid
}

/**
 * Returns the other slots of which an outstanding grant names this pod. It may have one of them already, or take it by
 * itself: while two slots named the pod, its agent could give it to either.
 */
export const grantedElsewhere = (
  { slots }: { readonly slots: ReadonlyMap<number, Pick<SlotMemory, 'grants'>> },
  uid: string | undefined,
  slot: number,
): readonly number[] =>
  [...slots].flatMap(([other, { grants }]) =>
    other !== slot && uid !== undefined && grants?.outstanding?.heir.uid === uid ? [other] : [],
  )

/** True if the slot may begin another incarnation: no pod can take it with the memory of this one. */
export const mayBeginAnew = (slot: Pick<SlotMemory, 'grants'> | undefined): boolean =>
  slot?.grants?.outstanding === undefined

/**
 * Returns the grant that the Lease of a served slot should have.
 *
 * @param heir the pod to name; undefined: none may have a grant now.
 * @param now isServed: the primary answers. A grant that is named stays while it does not. isAnnounced: as the owner asks for.
 */
export function nextGrant(
  slot: SlotMemory,
  heir: Candidate | undefined,
  { isServed, isAnnounced } = { isServed: false, isAnnounced: false },
): Grant | undefined {
  const { lease, grants } = slot
  const { grant } = lease
  if (grants?.outstanding !== undefined && grant?.heir !== undefined) {
    const isSame =
      heir?.uid === grant.heir.uid &&
      heir.node === grant.heir.node &&
      isAnnounced === (grant.isAnnounced ?? false)
    const isKept = isSame && !isSilentIn(slot, grant.heir.node)
    return isKept || grant.isRevoked ? grant : { ...grant, isRevoked: true }
  }
  if (!isServed || grants === undefined || heir?.node === undefined || !isUsableIn(slot, heir))
    return settled(grant)
  const { node, uid } = heir
  // A grant without an heir asks the agents for their words.
  if (!canUse(slot, node)) return settled(grant) ?? { number: grants.nextNumber, isRevoked: false }
  const announced = isAnnounced ? ({ isAnnounced } as const) : {}
  return { number: grants.nextNumber, heir: { uid, node }, isRevoked: false, ...announced }
}

/** The number stays, so that no later grant has it. */
const settled = (grant: Grant | undefined): Grant | undefined =>
  grant && { number: grant.number, isRevoked: false }

/** The agents of both nodes know of grants, and what became of the earlier ones. */
const canUse = ({ lease, grants }: SlotMemory, node: string): boolean =>
  lease.node !== undefined &&
  lease.node !== node &&
  [lease.node, node].every(each => grants?.words.has(each) === true)

/** The agent of this node has not written for long: it may not hear of the death, or be cut off from the API server. */
const isSilentIn = ({ copies }: SlotMemory, node: string): boolean =>
  copies.some(copy => copy.node === node && copy.silent === true)

function isUsableIn({ copies }: SlotMemory, heir: Candidate): boolean {
  const copy = copies.find(({ node, stale }) => node === heir.node && !stale)
  const { usable, understudyUid } = copy?.report ?? {}
  return usable === 'Staged' || (usable === 'Frozen' && understudyUid === heir.uid)
}

/** Returns the grant with which another pod gets the slot. The heir may still take it by itself, so that is remembered. */
export function grantOfSuccessor(slot: SlotMemory, uid: string): Grant | undefined {
  const { grant, node } = slot.lease
  return slot.grants?.outstanding?.heir.uid === uid && grant !== undefined
    ? { ...grant, isRevoked: true, ...(node !== undefined && { source: node }) }
    : settled(grant)
}

/**
 * Returns the writes that end revoked grants, on pods of which no agent has told that they resume. An heir whose promotion is recorded
 * may still use its grant until it is given up.
 */
export const endsOfGrants = ({ memory, pods }: SlotSnapshot): SlotActionOf<'endGrant'>[] =>
  [...(memory?.slots.values() ?? [])].flatMap(({ lease, grants }) => {
    const { grant, incarnation, slot } = lease
    const pod = grants?.outstanding?.untold
    if (grant?.isRevoked !== true || pod === undefined) return []
    const isLate = pods.find(({ uid }) => uid === pod.uid)?.stage?.late === true
    if (lease.holder.uid === pod.uid && !isLate) return []
    return [{ type: 'endGrant', pod, slot, incarnation, number: grant.number }]
  })

/** How often to look again whether a node is silent or lost, ms: silence causes no watch event. */
const againMs = 2_000

/** Returns the ms until the next look at grants that nothing but time may end; undefined if there is none. */
export const untilGrantsEnd = (s: Pick<SlotSnapshot, 'memory'>): number | undefined =>
  [...(s.memory?.slots.values() ?? [])].some(({ lease, grants, vacantSince }) => {
    const { outstanding, words } = grants ?? {}
    if (outstanding === undefined) return false
    // The agent of the primary is to say so, too, or to be silent for long enough.
    const isClaimed = !outstanding.isUsed && words?.get(outstanding.heir.node)?.used === lease.grant?.number
    return isClaimed || lease.grant?.isRevoked === true || vacantSince !== undefined
  })
    ? againMs
    : undefined
