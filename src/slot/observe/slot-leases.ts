import { isCloneHolder } from '../../api/clone-of.ts'
import { type NumberedSlotLease, parseNumberedSlotLease } from '../../api/numbered-slot.ts'
import { bySet, setsNamedBy } from '../../api/set-label.ts'
import { slotAnnotations } from '../../api/slot-lease.ts'
import type { Lease } from '../../kube/resources.ts'
import type { Store } from '../../kube/store.ts'
import type { Owner } from '../decide/owner.ts'

/** Index of Leases by the primary that they name, `namespace/pod`. */
export const byPrimary = 'primary'

export const leaseIndexes: Readonly<Record<string, (lease: Lease) => readonly string[]>> = {
  [bySet]: setsNamedBy,
  [byPrimary]: ({ metadata: { namespace, annotations }, spec }) => {
    const pod = annotations?.[slotAnnotations.pod]
    return pod === undefined || isCloneHolder(spec?.holderIdentity ?? '') ? [] : [`${namespace}/${pod}`]
  },
}

export interface SlotLeaseObject {
  readonly lease: NumberedSlotLease
  readonly object: Lease
}

/**
 * Returns the Leases of the slots of this very set. The label alone proves nothing: a set of the same name may have
 * been deleted, and the garbage collector may be slower than the client that creates a new one. A Lease without any
 * owner was orphaned on purpose, with its pods (`--cascade=orphan`), and is adopted as they are: the next write gives
 * it its owner.
 */
export const slotLeasesOf = (leases: Leases, set: SetName): readonly SlotLeaseObject[] =>
  presentLeases(leasesNamed(leases, set).filter(lease => !isForeign(lease, set)))

/** Returns the slots whose Lease belongs to another owner, a deleted set of this name. */
export const foreignSlotsOf = (leases: Leases, set: SetName): ReadonlySet<number> =>
  new Set(
    presentLeases(leasesNamed(leases, set).filter(lease => isForeign(lease, set))).map(
      ({ lease }) => lease.slot,
    ),
  )

/**
 * Returns the Leases of slots for which no operator makes a pass any more, although agents would still expect successors by
 * their policy: those of a deleted set, and those of a set that is being deleted.
 *
 * @param uid of the set that has this name now; undefined: there is none that stays.
 */
export const abandonedLeases = (
  leases: Leases,
  { namespace, name }: Pick<SetName, 'namespace' | 'name'>,
  uid: string | undefined,
): readonly SlotLeaseObject[] =>
  presentLeases(
    leasesNamed(leases, { namespace, name }).filter(lease => uid === undefined || isForeign(lease, { uid })),
  ).filter(({ lease: { policy } }) => policy?.paused === false)

type Leases = Pick<Store<Lease>, 'by'>

type SetName = Pick<Owner, 'namespace' | 'name' | 'uid'>

const leasesNamed = (leases: Leases, { namespace, name }: Omit<SetName, 'uid'>): readonly Lease[] =>
  leases.by(bySet, `${namespace}/${name}`)

/** Returns the Leases of slots that are not being deleted. */
export const presentLeases = (objects: readonly Lease[]): readonly SlotLeaseObject[] =>
  objects.flatMap(object => {
    const lease = parseNumberedSlotLease(object)
    return lease === undefined || object.metadata.deletionTimestamp !== undefined ? [] : [{ lease, object }]
  })

const isForeign = ({ metadata: { ownerReferences = [] } }: Lease, { uid }: Pick<SetName, 'uid'>): boolean =>
  ownerReferences.length > 0 && ownerReferences.every(owner => owner.uid !== uid)
