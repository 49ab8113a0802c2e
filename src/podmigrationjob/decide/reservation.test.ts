import { describe, expect, it } from 'vitest'
import { parseReservation } from '../../api/parse-reservation.ts'
import { reservations } from '../../api/reservation.ts'
import { presentWith } from '../testing/views.ts'
import { decideReservations, type Hold, type ReservationView } from './reservation.ts'

const now = Date.UTC(2030, 0, 1, 12)
const held = presentWith('room').pod
const podRef = { namespace: 'shop', name: 'room', uid: 'r' }

function viewWith(over: Partial<ReservationView> = {}, spec: object = {}): ReservationView {
  const metadata = {
    ...{ name: 'room', uid: 'room-uid', resourceVersion: '3' },
    creationTimestamp: new Date(now - 60_000).toISOString(),
  }
  const controller = { namespace: 'shop', name: 'web-h' }
  const parsed = parseReservation({ metadata, spec: { owners: [{ controller }], ...spec } })
  return {
    ...{ resource: reservations, key: 'g/room', name: 'room', uid: 'room-uid', resourceVersion: '3' },
    ...{ generation: 1, parsed, status: {}, pod: undefined, absentForMs: 60_000 },
    isOfJob: false,
    ...over,
  }
}

const planOf = (view: ReservationView, hold: Partial<Hold> = {}) => {
  const plan = decideReservations([view], {
    ...{ held: new Set(), isHeld: false, gated: new Map(), gates: new Map(), now },
    ...hold,
  })
  const [written] = plan.statuses
  const ready = written?.status.conditions?.find(({ type }) => type === 'Ready')
  return { phase: written?.status.phase, reason: ready?.reason, acts: plan.actions.map(({ type }) => type) }
}

describe('a Reservation', () => {
  it('gets a pod, unless its job does not refer to it yet or nothing may begin', () => {
    expect(planOf(viewWith())).toEqual({ phase: 'Pending', reason: 'Creating', acts: ['createPod'] })
    expect(planOf(viewWith(), { held: new Set(['g/room']) }).acts).toEqual([])
    expect(planOf(viewWith(), { isHeld: true }).acts).toEqual([])
  })

  it('PJ26: of a job that does not run gets no pod: whether that needs a gate is a matter of the job', () => {
    const ofJob = viewWith({ isOfJob: true })
    const created = (gated: boolean) =>
      decideReservations([ofJob], {
        ...{ held: new Set(), isHeld: false, gates: new Map(), now },
        gated: new Map([['g/room', gated]]),
      }).actions
    expect(planOf(ofJob).acts).toEqual([])
    expect(created(true)).toMatchObject([{ type: 'createPod', isGated: true }])
    expect(created(false)).toMatchObject([{ type: 'createPod', isGated: false }])
  })

  it.each([
    ['Pending', 'Scheduling', { node: undefined }],
    ['Pending', 'Unschedulable', { node: undefined, unschedulable: '0/3 nodes' }],
    ['Available', 'Available', {}],
    ['Succeeded', 'Succeeded', { isAdopted: true }],
    ['Failed', 'PodDeleted', { isTerminating: true }],
  ] as const)('is %s, %s, with such a pod', (phase, reason, over) => {
    expect(planOf(viewWith({ pod: held && { ...held, ...over } }))).toEqual({ phase, reason, acts: [] })
  })

  it('whose pod the caches do not show any more fails only when that lasts, and gets no second pod', () => {
    const status = { podRef }
    expect(planOf(viewWith({ status, absentForMs: 100 }))).toMatchObject({ phase: 'Pending', acts: [] })
    expect(planOf(viewWith({ status }))).toEqual({ phase: 'Failed', reason: 'PodDeleted', acts: [] })
  })

  it('fails when it expires, and its pod is deleted then, unless a workload has it', () => {
    const late = viewWith({ pod: held }, { ttl: '30s' })
    expect(planOf(late)).toEqual({ phase: 'Failed', reason: 'Expired', acts: [] })
    const status = { phase: 'Failed' } as const
    expect(planOf({ ...late, status }).acts).toEqual(['deletePod'])
    expect(planOf({ ...late, status, pod: held && { ...held, isAdopted: true } }).acts).toEqual([])
    expect(planOf(viewWith({ pod: held }, { ttl: '0s' })).phase).toBe('Available')
  })

  it('is invalid if another pod has its name, or its owner is no ReplicaSet', () => {
    expect(planOf(viewWith({ pod: 'foreign' }))).toMatchObject({ reason: 'InvalidReservation', acts: [] })
    const parsed = viewWith({}, { owners: [{ controller: { kind: 'Job', namespace: 'a', name: 'b' } }] })
    expect(planOf(parsed)).toMatchObject({ phase: 'Failed', reason: 'InvalidReservation', acts: [] })
  })
})
