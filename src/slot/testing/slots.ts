/** Slots, and the pods that have one or could take one. */
import type { PodKind } from '../../api/labels.ts'
import type { NumberedSlotLease } from '../../api/numbered-slot.ts'
import type { Copy, SlotMemory, StageView } from '../decide/memory-view.ts'
import type { Candidate } from '../decide/snapshot.ts'

/** A healthy pod of its kind. */
export const makeCandidate = (name: string, kind: PodKind, over: Partial<Candidate> = {}): Candidate => ({
  name,
  uid: `uid-${name}`,
  resourceVersion: '1',
  kind,
  slot: undefined,
  epoch: 0,
  node: 'n1',
  createdAt: 0,
  ready: kind !== 'coldbackup',
  unreadySince: kind === 'coldbackup' ? 0 : undefined,
  served: kind !== 'coldbackup',
  gate: kind === 'coldbackup' ? 'waiting' : 'none',
  waking: false,
  ...over,
})

/** The primary of a slot that keeps memory. */
export const makeHolder = (name: string, slot: number, over: Partial<Candidate> = {}): Candidate =>
  makeCandidate(name, 'primary', { slot, epoch: 1, node: `n-${name}`, stage: stage(), ...over })

export const stage = (over: Partial<StageView> = {}): StageView => ({
  keeps: true,
  understudy: false,
  successorOf: undefined,
  died: false,
  restarts: 0,
  containers: undefined,
  replaced: 'No',
  serving: false,
  resuming: false,
  unpublishedMs: undefined,
  selectable: false,
  promoting: false,
  spoiled: false,
  failed: undefined,
  ip: '10.0.0.1',
  restoreHash: undefined,
  memory: undefined,
  ...over,
})

export const makeLease = (pod: Candidate, over: Partial<NumberedSlotLease> = {}): NumberedSlotLease => ({
  namespace: 'default',
  name: `bps-${over.slot ?? pod.slot ?? 0}`,
  slot: pod.slot ?? 0,
  incarnation: `0000000${pod.slot ?? 0}`,
  group: 'bps',
  owner: 'set-uid',
  holder: { name: pod.name, uid: pod.uid },
  epoch: pod.epoch,
  node: pod.node,
  ip: undefined,
  heir: undefined,
  holders: [],
  kept: [],
  containers: undefined,
  ending: undefined,
  restoreHash: pod.stage?.restoreHash,
  handover: undefined,
  givenUpFor: undefined,
  ...over,
})

/** A copy of the slot on the node of this pod: staged in the pod, or only stored on its node. */
export const makeCopy = (
  lease: NumberedSlotLease,
  pod: Candidate,
  usable: 'Frozen' | 'Staged' | undefined,
  over: Partial<Copy['report']> = {},
): Copy => ({
  node: pod.node ?? '',
  seenAt: 500,
  stale: false,
  timely: true,
  report: {
    namespace: lease.namespace,
    name: lease.name,
    incarnation: lease.incarnation,
    role: 'holder',
    generation: 3,
    pipelineSeconds: 0.2,
    ...(usable && { usable }),
    ...(usable === 'Frozen' && { understudyUid: pod.uid }),
    ...over,
  },
})

const keptBy = ({ holders }: NumberedSlotLease, copies: readonly Copy[]) =>
  holders.filter(holder => copies.some(({ node }) => node === holder))

export const makeSlot = (
  lease: NumberedSlotLease,
  copies: readonly Copy[],
  over: Partial<SlotMemory> = {},
): SlotMemory => ({
  lease: lease.kept?.length === 0 ? { ...lease, kept: keptBy(lease, copies) } : lease,
  uid: `lease-${lease.slot}`,
  resourceVersion: '1',
  restarts: 0,
  intervalMs: 3_000,
  replacedSince: undefined,
  vacantSince: undefined,
  endedSince: over.vacantSince,
  holderGoesBy: undefined,
  unasked: [],
  source: undefined,
  sourceKeeps: false,
  copies,
  ...over,
})
