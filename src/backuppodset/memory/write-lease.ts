import {
  parseSlotLease,
  restartsAnnotation,
  type SlotLease,
  slotLeaseBody,
  slotLeaseName,
} from '../../api/slot-lease.ts'
import { isKubeError, KubeError } from '../../kube/errors.ts'
import { type Lease, leases } from '../../kube/resources.ts'
import type { ActContext } from '../act/context.ts'
import { ownerOf } from '../pod/render.ts'

type Context = Pick<ActContext, 'urgentApi' | 'set' | 'signal' | 'wroteLease'>

const bodyOf = (lease: SlotLease, restarts: number) => {
  const { metadata, spec } = slotLeaseBody(lease)
  return {
    metadata: {
      ...metadata,
      annotations: { ...metadata.annotations, [restartsAnnotation]: String(restarts) },
    },
    spec,
  }
}

/**
 * Writes what a slot's Lease shall say, if it is still the one that was looked at: of two operators that both think
 * they lead, one gets a Conflict. So does one whose cache does not show a Lease that is there.
 * @param version resourceVersion of the Lease that was read; undefined: there is none.
 * @returns the Lease as written. @throws KubeError.
 */
export async function writeLease(
  context: Context,
  lease: SlotLease,
  version: string | undefined,
  restarts: number,
): Promise<Lease> {
  const { urgentApi, set, signal } = context
  const written = bodyOf(lease, restarts)
  // Always: one that was left behind by a set of this name is ours from now on.
  const body = { ...written, metadata: { ...written.metadata, ownerReferences: [ownerOf(set)] } }
  const { name } = body.metadata
  const ref = { namespace: set.namespace, name }
  const swap = (resourceVersion: string) =>
    urgentApi.patch(
      leases,
      ref,
      { type: 'merge', body: { ...body, metadata: { ...body.metadata, resourceVersion } } },
      { signal },
    )
  const create = async () => {
    try {
      return await urgentApi.create(leases, body, { namespace: set.namespace, signal })
    } catch (error) {
      if (!isKubeError(error, 'AlreadyExists')) throw error
      const existing = await urgentApi.get(leases, ref, { signal })
      // Another's: left alone. One that says something: our cache does not show it yet, so what we wanted to write was
      // decided without it. Only one that says nothing any more, as after an edit by hand, is written again.
      if (!existing.metadata.ownerReferences?.some(owner => owner.uid === set.uid)) throw error
      if (parseSlotLease(existing) !== undefined)
        throw new KubeError('Conflict', `the Lease ${name} is there already, and was not looked at`)
      return swap(existing.metadata.resourceVersion)
    }
  }
  const result = version === undefined ? await create() : await swap(version)
  context.wroteLease(result)
  return result
}

/** Ends a slot's life: with the Lease goes the claim to what nodes keep of it. */
export async function deleteLease(
  context: Pick<ActContext, 'urgentApi' | 'set' | 'signal' | 'deletedLease'>,
  slot: number,
  { uid, resourceVersion }: { readonly uid: string; readonly resourceVersion: string },
): Promise<void> {
  const { urgentApi, set, signal } = context
  const ref = { namespace: set.namespace, name: slotLeaseName(set.name, slot) }
  try {
    await urgentApi.delete(leases, ref, { uid, resourceVersion }, { signal })
  } catch (error) {
    if (!isKubeError(error, 'NotFound')) throw error
  }
  context.deletedLease({ ...ref, uid, resourceVersion })
}
