// Long because it has each field of the Lease in both directions.
/**
 * The Lease of a slot: its primary, its epoch and its heir. Only the operator writes it. A compare-and-swap on its
 * `resourceVersion` is the promotion, and agents act by its content.
 */
import type { Lease } from '../kube/resources.ts'
import { type CloneOf, formatCloneOf, parseCloneOf } from './clone-of.ts'
import { type Fence, formatFence, parseFence } from './fence.ts'
import { formatGrant, type Grant, parseGrant } from './grant.ts'
import { labels, prefix } from './labels.ts'
import { type Least, parseLeast } from './least.ts'
import { formatSlotKey, numberedName, type SlotKey } from './slot-key.ts'
import { formatPolicy, parsePolicy, type SlotPolicy } from './slot-policy.ts'

export interface PodName {
  readonly name: string
  readonly uid: string
}

/** The understudy that should take this slot first: the one with a frozen clone of its memory, if that fits. */
export interface Heir extends PodName {
  /** Redirect target for connections to a dead primary; absent until the pod has an address. */
  readonly ip: string | undefined
}

/** The key that signs the memory of an epoch. */
export interface Signer {
  readonly epoch: number
  /** Fingerprint of the key of the agent on the primary's node in that epoch. Undefined: that agent signed nothing. */
  readonly fingerprint: string | undefined
}

export interface SlotLease extends SlotKey {
  /** See `groupOf`. */
  readonly group: string
  /** Uid of the object that owns the slot. Absent: none yet, or none any more; then it may be any. */
  readonly owner?: string
  /** Absent: unknown, as in Leases of earlier versions, and in those of a later version with another form. */
  readonly policy?: SlotPolicy | undefined
  /** The primary. */
  readonly holder: PodName
  readonly epoch: number
  /** Address of a primary that succeeded another one: redirect target for connections to earlier primaries. */
  readonly ip: string | undefined
  /** Node of the primary, whose agent takes checkpoints. */
  readonly node: string | undefined
  readonly heir: Heir | undefined
  /** Nodes that are to keep the slot's generations, the heir's first. Never the primary's own. */
  readonly holders: readonly string[]
  /**
   * Nodes that have reported a copy of this incarnation. Such a node counts until it reports that it has none: silence or an
   * incomplete report changes nothing. A former holder stays listed as long as it reports a copy, which may be the only
   * one left. Undefined in Leases of earlier versions: each of `holders` and `node` may have a copy.
   */
  readonly kept?: readonly string[] | undefined
  /**
   * Containers of the primary with the memory of this incarnation, in the form of `containerIdsOf`: if another container runs,
   * that memory has ended. Undefined until all of them run, and in Leases of earlier versions.
   */
  readonly containers?: string | undefined
  /** Uid of the primary while it is to be stopped, because another pod is about to take its slot. */
  readonly ending?: string | undefined
  /** Restore hash of pods in which its memory can be restored. Undefined in Leases of earlier versions. */
  readonly restoreHash?: string | undefined
  /** Uid of the understudy for whose handover the primary is to be stopped with its last generation saved. */
  readonly handover?: string | undefined
  /**
   * Number of handovers requested in this incarnation, including the current one: reports about an earlier handover do not
   * count. Absent: none yet, or a Lease of an earlier version.
   */
  readonly handovers?: number
  /**
   * Uid of the primary that handed the slot over to the present one, stopped and saved up to its last instruction; `tookOver`: the
   * present one has the slot without that. Absent in Leases of earlier versions: not known.
   */
  readonly handedOverBy?: string
  /**
   * The generation with which the slot's primary must continue at least: a node has it and could restore it. The one
   * before it will do if it was taken one interval earlier (see `stepsBehind`). Absent once any generation will do, and
   * in Leases of earlier versions.
   */
  readonly atLeast?: Least
  /** Its memory must not be saved for now: copies stay, but agents add no generations. */
  readonly unsaved?: boolean
  /** Template hash of the pods for which its memory is given up; written after the event that announces it. */
  readonly givenUpFor?: string | undefined
  /**
   * Since when the set has no place for this slot, RFC 3339 by the operator's clock: only its memory is kept. Its
   * primary, if it still exists, is deleted like any surplus pod, without a successor.
   */
  readonly retainedSince?: string
  /**
   * Its memory is kept until its owner resumes, however long that takes. It stays until a successor has the slot: its return is
   * no failover.
   */
  readonly suspended?: true
  /**
   * Half of the encryption key for this incarnation's generations on disks, 64 hex digits; the other half is in the agents'
   * Secret. When the Lease is deleted, they become unreadable. Absent: agents write nothing to disks.
   */
  readonly seal?: string
  /** The latest first. Absent in Leases of earlier versions; then the slot's memory need not be signed. */
  readonly signers?: readonly Signer[]
  /** Absent: its primary has no voters, and another pod takes over when Kubernetes reports the loss of the node. */
  readonly fence?: Fence
  /** The pod that may take the slot without the operator, once its primary has died. Absent: none had a grant yet. */
  readonly grant?: Grant
  /**
   * The slot begins with a copy of that memory. While the holder is no pod (`isCloning`) and no node reports the copy, its memory
   * is neither kept nor gone. Absent once its primary is on stage, and another node has the memory, too.
   */
  readonly cloneOf?: CloneOf
}

/** Returns the node of the heir for whose handover the primary is to be stopped; undefined: there is none. */
export const successorsNode = ({
  handover,
  heir,
  holders: [first],
}: Pick<SlotLease, 'handover' | 'heir' | 'holders'>): string | undefined =>
  handover !== undefined && handover === heir?.uid ? first : undefined

/** See `handedOverBy`. */
export const tookOver = 'none'

export const slotAnnotations = {
  incarnation: `${prefix}life`,
  policy: `${prefix}policy`,
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
  handedOverBy: `${prefix}handed-over-by`,
  atLeast: `${prefix}at-least`,
  atLeastTakenAt: `${prefix}at-least-taken-at`,
  unsaved: `${prefix}unsaved`,
  givenUpFor: `${prefix}given-up-for`,
  retainedSince: `${prefix}retained-since`,
  suspended: `${prefix}suspended`,
  seal: `${prefix}seal`,
  signers: `${prefix}signers`,
  fence: `${prefix}fence`,
  grant: `${prefix}grant`,
  cloneOf: `${prefix}clone-of`,
} as const

/**
 * Restarts of the primary's containers when its incarnation began, in addition to a `SlotLease`: one more restart ends
 * the incarnation.
 */
export const restartsAnnotation = `${prefix}restarts`

/** Returns the restarts in the Lease; undefined if they are absent or unreadable. */
export function restartsOf({ metadata }: Lease): number | undefined {
  const text = metadata.annotations?.[restartsAnnotation]
  return text !== undefined && /^\d{1,9}$/.test(text) ? Number(text) : undefined
}

type Labelled = Pick<Lease['metadata'], 'labels'>

/**
 * Returns the group of a pod or Lease; undefined: it has none. A pod may have only slots of its own group. For a set, the
 * group is the set's name; only the owner has to know that.
 */
export const groupOf = ({ labels: given }: Labelled): string | undefined => given?.[labels.set]

/** Selects pods and Leases that have a group. */
export const groupSelector = labels.set

/** Returns the name of the slot that a pod has, or had, by its labels; undefined: it has none. The Lease has the last word. */
export function slotOfPod({ labels: given }: Labelled): string | undefined {
  const { [labels.set]: group, [labels.slot]: number = '' } = given ?? {}
  if (group === undefined || !/^(0|[1-9]\d{0,8})$/.test(number)) return undefined
  return numberedName(group, Number(number))
}

/** Returns the content of a slot's Lease, without its owner. */
export function slotLeaseBody(lease: SlotLease) {
  return {
    metadata: {
      name: lease.name,
      namespace: lease.namespace,
      labels: { [labels.set]: lease.group },
      annotations: {
        [slotAnnotations.incarnation]: lease.incarnation,
        [slotAnnotations.pod]: lease.holder.name,
        ...(lease.policy && { [slotAnnotations.policy]: formatPolicy(lease.policy) }),
        // Empty and not absent: a merge patch must be able to clear a value.
        [slotAnnotations.node]: lease.node ?? '',
        [slotAnnotations.ip]: lease.ip ?? '',
        [slotAnnotations.heir]: lease.heir?.name ?? '',
        [slotAnnotations.heirUid]: lease.heir?.uid ?? '',
        [slotAnnotations.heirIp]: lease.heir?.ip ?? '',
        [slotAnnotations.holders]: lease.holders.join(','),
        // Absent differs from empty here: it is unknown which nodes have a copy.
        ...(lease.kept && { [slotAnnotations.kept]: lease.kept.join(',') }),
        [slotAnnotations.containers]: lease.containers ?? '',
        [slotAnnotations.ending]: lease.ending ?? '',
        [slotAnnotations.restoreHash]: lease.restoreHash ?? '',
        [slotAnnotations.handover]: lease.handover ?? '',
        [slotAnnotations.handovers]: String(lease.handovers ?? ''),
        [slotAnnotations.handedOverBy]: lease.handedOverBy ?? '',
        [slotAnnotations.atLeast]: lease.atLeast ? `${lease.atLeast.epoch}.${lease.atLeast.generation}` : '',
        // Apart from it, because agents of earlier versions read the annotation above as it is.
        [slotAnnotations.atLeastTakenAt]: lease.atLeast?.takenAt
          ? new Date(lease.atLeast.takenAt).toISOString()
          : '',
        [slotAnnotations.unsaved]: lease.unsaved ? 'true' : '',
        [slotAnnotations.givenUpFor]: lease.givenUpFor ?? '',
        [slotAnnotations.retainedSince]: lease.retainedSince ?? '',
        [slotAnnotations.suspended]: lease.suspended ? 'true' : '',
        [slotAnnotations.seal]: lease.seal ?? '',
        [slotAnnotations.signers]: formatSigners(lease.signers ?? []),
        [slotAnnotations.fence]: lease.fence === undefined ? '' : formatFence(lease.fence, lease),
        [slotAnnotations.grant]: lease.grant === undefined ? '' : formatGrant(lease.grant, lease),
        [slotAnnotations.cloneOf]: lease.cloneOf === undefined ? '' : formatCloneOf(lease.cloneOf),
      },
    },
    spec: { holderIdentity: lease.holder.uid, leaseTransitions: lease.epoch },
  }
}

/**
 * Parses the Lease of a slot; undefined if it is another Lease or unreadable. A Lease without a group is no Lease of a
 * slot, whatever it says: admission lets all users write it.
 */
export function parseSlotLease(lease: Lease): SlotLease | undefined {
  const { metadata, spec } = lease
  const note = (key: keyof typeof slotAnnotations) =>
    metadata.annotations?.[slotAnnotations[key]] || undefined
  const key = {
    namespace: metadata.namespace ?? '',
    name: metadata.name,
    incarnation: note('incarnation') ?? '',
  }
  const group = groupOf(metadata)
  const name = note('pod')
  const uid = spec?.holderIdentity
  if (group === undefined || formatSlotKey(key) === undefined || name === undefined || !uid) return undefined
  const heirName = note('heir')
  const heirUid = note('heirUid')
  const seal = note('seal')
  const handedOverBy = note('handedOverBy')
  const signers = note('signers')
  const policy = parsePolicy(note('policy'))
  const owner = ownerOf(metadata)
  const epoch = spec.leaseTransitions ?? 0
  const fence = parseFence(note('fence'), { ...key, epoch })
  const grant = parseGrant(note('grant'), { ...key, epoch })
  const cloneOf = parseCloneOf(note('cloneOf'), key.namespace)
  const [handovers] = /^[1-9]\d{0,8}$/.exec(note('handovers') ?? '') ?? []
  const atLeast = parseLeast(note('atLeast'), note('atLeastTakenAt'))
  return {
    ...key,
    group,
    ...(owner !== undefined && { owner }),
    ...(policy !== undefined && { policy }),
    holder: { name, uid },
    epoch,
    ...{ node: note('node'), ip: note('ip') },
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
    ...(atLeast && { atLeast }),
    ...(handovers !== undefined && { handovers: Number(handovers) }),
    ...(handedOverBy !== undefined && { handedOverBy }),
    ...marksIn(note),
    ...(seal !== undefined && /^[0-9a-f]{64}$/.test(seal) && { seal }),
    ...(signers !== undefined && { signers: parseSigners(signers) }),
    ...(fence !== undefined && { fence }),
    ...(grant !== undefined && { grant }),
    ...(cloneOf !== undefined && { cloneOf }),
  }
}

/** Returns the marks of a slot that only the operator sets and takes back. */
function marksIn(note: (key: keyof typeof slotAnnotations) => string | undefined) {
  const retainedSince = note('retainedSince')
  return {
    ...(note('unsaved') === 'true' && { unsaved: true }),
    ...(retainedSince !== undefined && { retainedSince }),
    ...(note('suspended') === 'true' && { suspended: true as const }),
  }
}

/** Returns the uid of the object that owns this one: its controller, or else its first owner. */
export function ownerOf({
  ownerReferences = [],
}: Pick<Lease['metadata'], 'ownerReferences'>): string | undefined {
  return (ownerReferences.find(({ controller }) => controller === true) ?? ownerReferences[0])?.uid
}

/** `4=FINGERPRINT,3=`: that key signed in epoch 4, and no key in epoch 3. */
const formatSigners = (signers: readonly Signer[]): string =>
  signers.map(({ epoch, fingerprint = '' }) => `${epoch}=${fingerprint}`).join(',')

/** An unreadable entry yields no signer, so that no memory of that epoch is trusted. */
const parseSigners = (text: string): readonly Signer[] =>
  text.split(',').flatMap(word => {
    const [, epoch, fingerprint] = /^(0|[1-9]\d{0,14})=([0-9a-f]{64}|)$/.exec(word) ?? []
    return epoch === undefined ? [] : [{ epoch: Number(epoch), fingerprint: fingerprint || undefined }]
  })
