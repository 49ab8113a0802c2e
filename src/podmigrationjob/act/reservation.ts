/** The acts of a plan for Reservations, and the writes of their statuses. */
import type { ReservationStatus } from '../../api/reservation.ts'
import type { Api } from '../../kube/api-types.ts'
import { isKubeError, messageOf } from '../../kube/errors.ts'
import { pods } from '../../kube/resources.ts'
import {
  failedReservation,
  type ReservationAction,
  type ReservationView,
  statusAfter,
} from '../decide/reservation.ts'
import { finalCodes } from './evict.ts'
import type { Performer } from './performer.ts'
import { NoReservation } from './placed.ts'
import { nominate, openGate } from './preempt.ts'
import { createReservedPod } from './reserve.ts'

const changed = (error: unknown): void => {
  // The next pass sees what has changed.
  if (!isKubeError(error, 'NotFound', 'Conflict')) throw error
}

export async function writeReservation(
  api: Pick<Api, 'patch'>,
  { view, status }: { readonly view: ReservationView; readonly status: ReservationStatus },
  signal: AbortSignal,
): Promise<void> {
  const { resource, name, uid, resourceVersion } = view
  const body = { metadata: { uid, resourceVersion }, status }
  const options = { subresource: 'status', signal } as const
  await api.patch(resource, { name }, { type: 'merge', body }, options).catch(changed)
}

export async function performReservation(
  action: ReservationAction,
  { api, clock }: Pick<Performer, 'api' | 'clock'>,
  signal: AbortSignal,
): Promise<undefined> {
  const { view } = action
  const orFail = (act: Promise<void>) =>
    act.catch(async (error: unknown) => {
      const isFinal = isKubeError(error) ? finalCodes.includes(error.code) : error instanceof NoReservation
      if (!isFinal) throw error
      const reason = error instanceof NoReservation ? error.reason : 'FailedCreateReservation'
      const status = statusAfter(view, failedReservation(reason, messageOf(error)), clock.now())
      await writeReservation(api, { view, status }, signal)
    })
  switch (action.type) {
    case 'createPod':
      await orFail(createReservedPod(api, action, signal))
      return
    case 'nominate':
      await orFail(nominate(api, action, signal).catch(changed))
      return
    case 'openGate':
      await orFail(openGate(api, action, signal).catch(changed))
      return
    case 'deletePod': {
      const { uid, resourceVersion } = action.pod
      const namespace = view.parsed.ok ? view.parsed.reservation.owner.namespace : undefined
      await api
        .delete(pods, { namespace, name: view.name }, { uid, resourceVersion }, { signal })
        .catch(changed)
      return
    }
    default:
      action satisfies never
  }
}
