/**
 * The Lease of a slot: who holds it, in which epoch, and who would take over. The operator alone writes it; a
 * compare-and-swap there (`resourceVersion`) is what makes a promotion, and the agents act on what it says.
 */
import type { Lease } from '../kube/resources.ts'
import { labels, prefix } from './labels.ts'

/** Identifies the memory of one slot. A number that is used again begins another life, and inherits nothing. */
export interface SlotKey {
  readonly namespace: string
  readonly set: string
  readonly slot: number
  /** 8 hex digits, drawn when the slot starts with no memory. */
  readonly life: string
}

export interface PodName {
  readonly name: string
  readonly uid: string
}

/** An understudy that is to take this slot first: the one in which its memory lies frozen, if that fits. */
export interface Heir extends PodName {
  /** Where connections to a dead primary are sent; absent until the pod has an address. */
  readonly ip: string | undefined
}

/** Whose signature the memory of an epoch bears. */
export interface Signer {
  readonly epoch: number
  /** Of the key of the agent on the node that had the primary then. Undefined: that agent signed nothing. */
  readonly fingerprint: string | undefined
}

export interface SlotLease extends SlotKey {
  /** The primary. */
  readonly holder: PodName
  readonly epoch: number
  /** Address of a primary that followed another one: where connections to those before it are sent. */
  readonly ip: string | undefined
  /** Node of the primary, whose agent takes checkpoints. */
  readonly node: string | undefined
  readonly heir: Heir | undefined
  /** Nodes that are to keep the slot's generations, the heir's first. Never the primary's own. */
  readonly holders: readonly string[]
  /**
   * Nodes that have said that they keep something of this life. Such a node has it until it says itself
   * that it has nothing: silence, or a report that it has not finished, takes nothing away. A holder that has been let go is
   * named here, too, for as long as it is heard to have something: it may be the only one that is not lost. Undefined in Leases
   * of before this was written: each of `holders` and `node` may have something.
   */
  readonly kept?: readonly string[] | undefined
  /**
   * The containers of the holder whose memory this life is, as `containerIdsOf` says them: where another one runs, that
   * memory has ended. Undefined until all of them run, and in Leases of before this was written.
   */
  readonly containers?: string | undefined
  /** Uid of the holder while it is to be ended, because another pod is about to take its slot. */
  readonly ending?: string | undefined
  /** Pods of this restore hash can be given its memory. Undefined in Leases of before it was written. */
  readonly restoreHash?: string | undefined
  /** Uid of the understudy for which the primary is to stand still with its last generation saved: it is to be replaced. */
  readonly handover?: string | undefined
  /**
   * How many handovers of this life have been asked for, the present one included: what is said of an earlier one is worth
   * nothing for it. Absent: none yet, or a Lease of before this was written.
   */
  readonly handovers?: number
  /**
   * What the holder has to go on with at least, but for one generation: somebody has it, and could bring it back. Absent once
   * it is to go on with whatever it has, and in Leases of before this was written.
   */
  readonly atLeast?: { readonly epoch: number; readonly generation: number }
  /** Its memory must not be saved just now: what is kept stays, and nothing is added. */
  readonly unsaved?: boolean
  /** Template hash of the pods for which its memory is given up; written after the event that says so. */
  readonly givenUpFor?: string | undefined
  /**
   * Since when, RFC 3339 by the clock of the operator, the set has no place for this slot: its memory is only kept. Its
   * primary, while it is still there, ends like any pod, and nobody follows it.
   */
  readonly retainedSince?: string
  /**
   * Half of the key of what lies on disks of this life, 64 hex digits; the other one is in the agents' Secret. With the
   * Lease it goes, and nothing of it can be read again. Absent: nothing is written to disks.
   */
  readonly seal?: string
  /** The latest first. Absent in Leases of before it was written; then no memory of the slot has to be signed. */
  readonly signers?: readonly Signer[]
}

export const slotAnnotations = {
  life: `${prefix}life`,
  pod: `${prefix}pod`,
  node: `${prefix}node`,
  ip: `${prefix}ip`,
  heir: `${prefix}heir`,
  heirUid: `${prefix}heir-uid`,
  heirIp: `${prefix}heir-ip`,
  holders: `${prefix}holders`,
  kept: `${prefix}kept`,
  containers: `${prefix}containers`,
  ending: `${prefix}ending`,
  restoreHash: `${prefix}restore-hash`,
  handover: `${prefix}handover`,
  handovers: `${prefix}handovers`,
  atLeast: `${prefix}at-least`,
  unsaved: `${prefix}unsaved`,
  givenUpFor: `${prefix}given-up-for`,
  retainedSince: `${prefix}retained-since`,
  seal: `${prefix}seal`,
  signers: `${prefix}signers`,
} as const

/** Restarts of the holder's containers when its life began, beside what a `SlotLease` says: one more is the end of it. */
export const restartsAnnotation = `${prefix}restarts`

/** What the Lease says of these; undefined: nothing that can be read. */
export function restartsOf({ metadata }: Lease): number | undefined {
  const text = metadata.annotations?.[restartsAnnotation]
  return text !== undefined && /^\d{1,9}$/.test(text) ? Number(text) : undefined
}

export const slotLeaseName = (set: string, slot: number): string => `${set}-${slot}`

/** The content of a slot's Lease that says this. */
export function slotLeaseBody(lease: SlotLease) {
  return {
    metadata: {
      name: slotLeaseName(lease.set, lease.slot),
      namespace: lease.namespace,
      labels: { [labels.set]: lease.set, [labels.slot]: String(lease.slot) },
      annotations: {
        [slotAnnotations.life]: lease.life,
        [slotAnnotations.pod]: lease.holder.name,
        // Empty and not absent: a merge patch must be able to take a value back.
        [slotAnnotations.node]: lease.node ?? '',
        [slotAnnotations.ip]: lease.ip ?? '',
        [slotAnnotations.heir]: lease.heir?.name ?? '',
        [slotAnnotations.heirUid]: lease.heir?.uid ?? '',
        [slotAnnotations.heirIp]: lease.heir?.ip ?? '',
        [slotAnnotations.holders]: lease.holders.join(','),
        // Absent is not empty here: nothing is known of what is kept.
        ...(lease.kept && { [slotAnnotations.kept]: lease.kept.join(',') }),
        [slotAnnotations.containers]: lease.containers ?? '',
        [slotAnnotations.ending]: lease.ending ?? '',
        [slotAnnotations.restoreHash]: lease.restoreHash ?? '',
        [slotAnnotations.handover]: lease.handover ?? '',
        [slotAnnotations.handovers]: String(lease.handovers ?? ''),
        [slotAnnotations.atLeast]: lease.atLeast ? `${lease.atLeast.epoch}.${lease.atLeast.generation}` : '',
        [slotAnnotations.unsaved]: lease.unsaved ? 'true' : '',
        [slotAnnotations.givenUpFor]: lease.givenUpFor ?? '',
        [slotAnnotations.retainedSince]: lease.retainedSince ?? '',
        [slotAnnotations.seal]: lease.seal ?? '',
        [slotAnnotations.signers]: formatSigners(lease.signers ?? []),
      },
    },
    spec: { holderIdentity: lease.holder.uid, leaseTransitions: lease.epoch },
  }
}

/** What a Lease says of its slot; undefined when it is not the Lease of a slot or cannot be read. */
export function parseSlotLease(lease: Lease): SlotLease | undefined {
  const { metadata, spec } = lease
  const note = (key: keyof typeof slotAnnotations) =>
    metadata.annotations?.[slotAnnotations[key]] || undefined
  const set = metadata.labels?.[labels.set]
  const slot = metadata.labels?.[labels.slot]
  const life = note('life')
  const name = note('pod')
  const uid = spec?.holderIdentity
  if (set === undefined || slot === undefined || !/^(0|[1-9]\d{0,8})$/.test(slot)) return undefined
  if (life === undefined || !/^[0-9a-f]{8}$/.test(life) || name === undefined || !uid) return undefined
  if (metadata.name !== slotLeaseName(set, Number(slot))) return undefined
  const heirName = note('heir')
  const heirUid = note('heirUid')
  const seal = note('seal')
  const signers = note('signers')
  const retainedSince = note('retainedSince')
  const [handovers] = /^[1-9]\d{0,8}$/.exec(note('handovers') ?? '') ?? []
  const [, epoch, generation] = /^(\d{1,15})\.(\d{1,15})$/.exec(note('atLeast') ?? '') ?? []
  return {
    namespace: metadata.namespace ?? '',
    set,
    slot: Number(slot),
    life,
    holder: { name, uid },
    epoch: spec.leaseTransitions ?? 0,
    node: note('node'),
    ip: note('ip'),
    heir:
      heirName === undefined || heirUid === undefined
        ? undefined
        : { name: heirName, uid: heirUid, ip: note('heirIp') },
    holders: note('holders')?.split(',') ?? [],
    kept: metadata.annotations?.[slotAnnotations.kept]?.split(',').filter(Boolean),
    containers: note('containers'),
    ending: note('ending'),
    restoreHash: note('restoreHash'),
    handover: note('handover'),
    givenUpFor: note('givenUpFor'),
    ...(epoch !== undefined && { atLeast: { epoch: Number(epoch), generation: Number(generation) } }),
    ...(handovers !== undefined && { handovers: Number(handovers) }),
    ...(note('unsaved') === 'true' && { unsaved: true }),
    ...(retainedSince !== undefined && { retainedSince }),
    ...(seal !== undefined && /^[0-9a-f]{64}$/.test(seal) && { seal }),
    ...(signers !== undefined && { signers: parseSigners(signers) }),
  }
}

/** `4=FINGERPRINT,3=`: in epoch 4 that key signed, in epoch 3 none. */
const formatSigners = (signers: readonly Signer[]): string =>
  signers.map(({ epoch, fingerprint = '' }) => `${epoch}=${fingerprint}`).join(',')

/** What cannot be read names nobody, so that nothing of that epoch is believed. */
const parseSigners = (text: string): readonly Signer[] =>
  text.split(',').flatMap(word => {
    const [, epoch, fingerprint] = /^(0|[1-9]\d{0,14})=([0-9a-f]{64}|)$/.exec(word) ?? []
    return epoch === undefined ? [] : [{ epoch: Number(epoch), fingerprint: fingerprint || undefined }]
  })
