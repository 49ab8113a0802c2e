/** Reservations with their pods, and which job uses which. */
import type { ParsedJobOrRefused } from '../../api/parse-pod-migration-job.ts'
import { parseReservation } from '../../api/parse-reservation.ts'
import { isFinishedJob, reservationLabel } from '../../api/pod-migration-job.ts'
import { reservationConditions, reservations } from '../../api/reservation.ts'
import { keyOfRef } from '../../kube/object.ts'
import { isReady } from '../../kube/ready.ts'
import type { Pod } from '../../kube/resources.ts'
import type { Store } from '../../kube/store.ts'
import { type ReservationView, reservationKeyOf } from '../decide/reservation.ts'
import { isOwnReservation } from '../decide/reservation-first.ts'
import { reservationNameOf } from '../decide/reservation-name.ts'
import type { ReservationFacts, ReservedPod } from '../decide/view.ts'
import type { KnownJob, KnownReservation } from './known.ts'
import { isGated } from './pod-facts.ts'

interface KnownView extends ReservationView {
  /** Uids of its owners: of the job for which the operator has created it. */
  readonly owners: readonly string[]
}

export function reservationViewOf(
  { resource, reservation }: KnownReservation,
  pods: Pick<Store<Pod>, 'get'>,
  heldForMs: (key: string) => number,
): KnownView {
  const { name, uid, resourceVersion, generation = 0, ownerReferences = [] } = reservation.metadata
  const parsed = parseReservation(reservation)
  const namespace = parsed.ok ? parsed.reservation.owner.namespace : undefined
  const pod = namespace === undefined ? undefined : pods.get(keyOfRef({ namespace, name }))
  return {
    ...{ resource, key: reservationKeyOf(resource, name), name, uid, resourceVersion, generation, parsed },
    status: reservation.status ?? {},
    pod: pod && podOf(pod, uid),
    absentForMs: pod === undefined ? heldForMs(`${uid}/no-pod`) : 0,
    isOfJob: ownerReferences.some(job => name === reservationNameOf(job)),
    owners: ownerReferences.map(owner => owner.uid),
  }
}

function podOf(pod: Pod, reservation: string): ReservedPod | 'foreign' {
  const { metadata, spec, status } = pod
  const { uid, resourceVersion, labels, deletionTimestamp, ownerReferences = [] } = metadata
  if (labels?.[reservationLabel] !== reservation) return 'foreign'
  const scheduled = status?.conditions?.find(({ type }) => type === 'PodScheduled')
  const node = spec?.nodeName
  const isTerminating = deletionTimestamp !== undefined
  const isBehindGate = isGated(pod)
  return {
    ...{ uid, resourceVersion, node, isTerminating, isGated: isBehindGate },
    nominated: node === undefined ? status?.nominatedNodeName || undefined : undefined,
    unschedulable:
      node === undefined && !isBehindGate && scheduled?.status === 'False'
        ? (scheduled.message ?? 'no node takes it')
        : undefined,
    isReady: isReady({ ...(status && { status }) }) && !isTerminating,
    // The adoption takes the Reservation from the owners. A pod that its ReplicaSet has released since is not the Reservation's again.
    isAdopted: !ownerReferences.some(owner => owner.uid === reservation),
  }
}

interface Parsed {
  readonly known: KnownJob
  readonly parsed: ParsedJobOrRefused
}

function keyFor({ known, parsed }: Parsed): string | undefined {
  if (!parsed.ok || parsed.job.mode !== 'ReservationFirst') return undefined
  const { reservationRef } = parsed.job
  return reservationRef === undefined
    ? reservationKeyOf(reservations, reservationNameOf(known.job.metadata))
    : reservationKeyOf(reservationRef, reservationRef.name)
}

/** Returns the uid of the job that uses each Reservation. The job that was admitted first uses it. */
export function usersOf(jobs: readonly Parsed[]): ReadonlyMap<string, string> {
  const begun = ({ known: { job } }: Parsed) => `${job.status?.startTime ?? ''}/${job.metadata.uid}`
  const users = new Map<string, Parsed>()
  for (const each of jobs) {
    const key = keyFor(each)
    const { job } = each.known
    if (key === undefined || isFinishedJob(job) || job.status?.phase !== 'Running') continue
    const other = users.get(key)
    if (other === undefined || begun(each) < begun(other)) users.set(key, each)
  }
  return new Map([...users].map(([key, { known }]) => [key, known.job.metadata.uid]))
}

export function reservationFactsOf(
  { known, parsed }: Parsed,
  among: {
    readonly reservations: ReadonlyMap<string, KnownView>
    readonly users: ReadonlyMap<string, string>
  },
  absentForMs: () => number,
): ReservationFacts {
  const key = keyFor({ known, parsed })
  const found = key === undefined ? undefined : among.reservations.get(key)
  const { uid } = known.job.metadata
  const wanted = parsed.ok ? parsed.job.reservationRef?.uid : undefined
  if (key === undefined || found === undefined || (wanted ?? found.uid) !== found.uid || !parsed.ok)
    return { type: 'absent', seenForMs: key === undefined ? 0 : absentForMs() }
  const isOwned = isOwnReservation({ uid }, parsed.job) && found.owners.includes(uid)
  if (parsed.job.reservationRef === undefined && !isOwned) return { type: 'foreign' }
  const user = among.users.get(key)
  const { resource, name, resourceVersion, status, pod } = found
  const { conditions = [], phase } = status
  const ready = conditions.find(({ type }) => type === reservationConditions.ready)
  return {
    ...{ type: 'present', resource, name, uid: found.uid, resourceVersion, isOwned },
    isTaken: user !== undefined && user !== uid,
    isBound: phase === 'Succeeded',
    owner: found.parsed.ok ? found.parsed.reservation.owner : undefined,
    failure:
      phase === 'Failed'
        ? { reason: ready?.reason ?? 'InvalidReservation', message: ready?.message ?? 'it has failed' }
        : undefined,
    pod: pod === 'foreign' ? undefined : pod,
  }
}
