import {
  type NumberedSlotLease,
  numberedSlotLeaseBody,
  parseNumberedSlotLease,
  slotLeaseName,
} from '../../api/numbered-slot.ts'
import { restartsAnnotation, slotAnnotations } from '../../api/slot-lease.ts'
import { formatPolicy, type SlotPolicy } from '../../api/slot-policy.ts'
import type { Api } from '../../kube/api.ts'
import { isKubeError, KubeError } from '../../kube/errors.ts'
import { type Lease, leases } from '../../kube/resources.ts'
import { controllerReference } from '../decide/owner.ts'
import type { SlotPort } from './context.ts'

const bodyOf = (lease: NumberedSlotLease, restarts: number) => {
  const { metadata, spec } = numberedSlotLeaseBody(lease)
  return {
    metadata: {
      ...metadata,
      annotations: { ...metadata.annotations, [restartsAnnotation]: String(restarts) },
    },
    spec,
  }
}

/**
 * Writes a slot's Lease, if it is still the version that was read: of two operators that both think they lead, one gets
 * a Conflict. So does an operator whose cache does not show an existing Lease yet.
 * @param version resourceVersion of the Lease that was read; undefined: there is none.
 * @returns the Lease as written. @throws KubeError.
 */
export async function writeLease(
  context: SlotPort,
  lease: NumberedSlotLease,
  version: string | undefined,
  restarts: number,
): Promise<Lease> {
  const { urgentApi, owner, signal } = context
  const written = bodyOf(lease, restarts)
  // Always set the owner: a Lease that a deleted set of this name left behind is ours from now on.
  const body = {
    ...written,
    metadata: { ...written.metadata, ownerReferences: [controllerReference(owner)] },
  }
  const { name } = body.metadata
  const ref = { namespace: owner.namespace, name }
  const swap = (resourceVersion: string) =>
    urgentApi.patch(
      leases,
      ref,
      { type: 'merge', body: { ...body, metadata: { ...body.metadata, resourceVersion } } },
      { signal },
    )
  const create = async () => {
    try {
      return await urgentApi.create(leases, body, { namespace: owner.namespace, signal })
    } catch (error) {
      if (!isKubeError(error, 'AlreadyExists')) throw error
      const existing = await urgentApi.get(leases, ref, { signal })
      // A Lease of another owner is left alone. A Lease that can be parsed is not in our cache yet, so that our write
      // was decided without it. Only a Lease that cannot be parsed any more, as after an edit by hand, is overwritten.
      if (!existing.metadata.ownerReferences?.some(({ uid }) => uid === owner.uid)) throw error
      if (parseNumberedSlotLease(existing) !== undefined)
        throw new KubeError(
          'Conflict',
          `the Lease ${name} exists already, and our cache does not show it yet`,
        )
      return swap(existing.metadata.resourceVersion)
    }
  }
  return version === undefined ? await create() : await swap(version)
}

/**
 * Writes the policy of a slot, and nothing else, into its Lease, if that is still the version that was read.
 * @returns the Lease as written. @throws KubeError.
 */
export const writePolicy = (
  { api, signal }: { readonly api: Pick<Api, 'patch'>; readonly signal: AbortSignal },
  ref: { readonly namespace: string; readonly name: string },
  resourceVersion: string,
  policy: SlotPolicy,
): Promise<Lease> => {
  const annotations = { [slotAnnotations.policy]: formatPolicy(policy) }
  return api.patch(
    leases,
    ref,
    { type: 'merge', body: { metadata: { resourceVersion, annotations } } },
    { signal },
  )
}

/** Ends a slot's incarnation: nodes keep its memory only for as long as the Lease exists. */
export async function deleteLease(
  context: SlotPort,
  slot: number,
  { uid, resourceVersion }: { readonly uid: string; readonly resourceVersion: string },
): Promise<void> {
  const { urgentApi, owner, signal } = context
  const ref = { namespace: owner.namespace, name: slotLeaseName(owner.name, slot) }
  try {
    await urgentApi.delete(leases, ref, { uid, resourceVersion }, { signal })
  } catch (error) {
    if (!isKubeError(error, 'NotFound')) throw error
  }
}
