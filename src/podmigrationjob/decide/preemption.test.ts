/** Preemption for the replacement of a job: who gives way, and in which order it happens. */
import { describe, expect, it } from 'vitest'
import type { PodMigrationJobStatus } from '../../api/pod-migration-job.ts'
import { reservations } from '../../api/reservation.ts'
import { nodes, replacement, sized, web } from '../testing/crowds.ts'
import { presentWith, viewWith } from '../testing/views.ts'
import { argsWith, podWith, worldOf } from '../testing/worlds.ts'
import { gatesOf } from './gate.ts'
import { decide } from './next.ts'
import { type ReservationView, reservationKeyOf } from './reservation.ts'
import type { JobView, PreemptionFacts, ReservedPod } from './view.ts'
import type { PodFacts } from './world.ts'

const now = Date.UTC(2030, 0, 1, 12)
const key = reservationKeyOf(reservations, 'reservation-job-uid')
const gatedView = (over: Partial<ReservedPod> = {}, mine = key): ReservationView => ({
  ...{ resource: reservations, key: mine, uid: 'r-uid', resourceVersion: '3', generation: 1 },
  ...{ name: 'reservation-job-uid', status: {}, absentForMs: 0, mayPreempt: false },
  parsed: {
    ok: true,
    reservation: {
      ...{ placement: {}, expiresAt: undefined },
      owner: { namespace: 'default', name: 'web-h', uid: undefined },
    },
  },
  pod: presentWith('reservation-job-uid', { node: undefined, isGated: true, ...over }).pod,
})
const gateWith = (
  pods: readonly PodFacts[],
  over: Partial<PodFacts> = {},
  wanted: Readonly<Record<string, string>> = {},
) => {
  const world = worldOf([...pods, replacement(over)], { nodes })
  return gatesOf([gatedView()], world, new Map(Object.entries(wanted))).get(key)
}

describe('the gate of a pod for which the scheduler would remove others', () => {
  const lower = sized('a', 1)

  it('opens when no pod with a lower priority runs, whatever room there is', () => {
    expect(gateWith([])).toEqual({ type: 'open' })
    expect(gateWith([sized('a', 9, { priority: 9 })])).toEqual({ type: 'open' })
    // Placeholders may go at any time.
    expect(gateWith([sized('a', 9, { priority: -11 })])).toEqual({ type: 'open' })
    expect(gateWith([sized('a', 9, { priority: -10 })])).toEqual({ type: 'closed' })
  })

  it('the pod is nominated for a node with room first, and the gate opens then', () => {
    expect(gateWith([lower])).toEqual({ type: 'nominate', node: 'full' })
    expect(gateWith([lower], { nominated: 'full' })).toEqual({ type: 'open' })
    // The room has gone meanwhile.
    expect(gateWith([lower, sized('b', 2)], { nominated: 'full' })).toEqual({ type: 'closed' })
    expect(gateWith([lower, sized('b', 2)])).toEqual({ type: 'closed' })
    expect(gateWith([lower, sized('b', 2, { node: undefined, nominated: 'full' })])).toEqual({
      type: 'closed',
    })
  })

  it('while pods give way, it waits for their node, and for no other one', () => {
    const two = [lower, sized('b', 2)]
    expect(gateWith(two, {}, { [key]: 'full' })).toEqual({ type: 'nominate', node: 'full' })
    expect(gateWith(two, { nominated: 'full' }, { [key]: 'full' })).toEqual({ type: 'closed' })
    expect(gateWith([lower], { nominated: 'full' }, { [key]: 'full' })).toEqual({ type: 'open' })
    expect(gateWith([lower], { nominated: 'full' }, { [key]: 'spare' })).toEqual({
      type: 'nominate',
      node: 'spare',
    })
  })
})

const running: PodMigrationJobStatus = {
  ...{ phase: 'Running', reason: 'Admitted', message: 'm', mode: 'ReservationFirst' },
  startTime: new Date(now - 1_000).toISOString(),
  source: { uid: 'uid-web-0', nodeName: 'n1', workload: web.key },
}
const victim = sized('b', 3)
const ref = { apiVersion: 'v1', kind: 'Pod', namespace: 'default', name: 'b', uid: 'uid-b' }
const under: PodMigrationJobStatus = { ...running, preemptionNodeName: 'full', preemptedPodsRef: [ref] }
const child = (status: PodMigrationJobStatus = {}): PreemptionFacts => ({
  ...{ job: 'c-uid', pod: { namespace: 'default', name: 'b', uid: 'uid-b' }, status },
  reservation: { phase: 'Available', nodeName: 'spare' },
})

function planOf(
  over: Partial<JobView>,
  {
    spec = {},
    pod = {},
    pods = [victim],
  }: { spec?: object; pod?: Partial<ReservedPod>; pods?: PodFacts[] } = {},
) {
  const source = podWith('web-0', { owner: web, priority: 9, requests: { cpu: 2 } })
  const held = { node: undefined, isGated: true, isReady: false, ...pod }
  const { nominated, node: its } = held
  const view = viewWith(
    {
      mode: 'ReservationFirst',
      reservationOptions: { reservationRef: { name: 'reservation-job-uid' }, preemptionOptions: {} },
      ...spec,
    },
    { pod: source, status: running, reservation: presentWith('reservation-job-uid', held), ...over },
  )
  const own = replacement({ nominated, node: its })
  const plan = decide([view], {
    ...{ world: worldOf([...pods, source, own], { nodes }), reservations: [gatedView(held)] },
    ...{ config: { ok: true, args: argsWith() }, now, tokens: 9 },
  })
  const { status } = plan.statuses[0] ?? {}
  const condition = status?.conditions?.find(({ type }) => type === 'Preemption')
  return {
    status,
    preemption: condition && `${condition.status} ${condition.reason}`,
    actions: plan.actions.map(({ type }) => type),
    reservation: plan.reservations.actions.map(({ type }) => type),
  }
}

describe('preemption for the replacement of a job', () => {
  it('PJ26: the status names node and pods first, then the pod is nominated, then the others get their jobs', () => {
    const first = planOf({})
    expect(first).toMatchObject({ preemption: 'False Preempting', actions: [], reservation: [] })
    expect(first.status).toMatchObject({ preemptionNodeName: 'full', preemptedPodsRef: [ref] })
    expect(planOf({ status: under })).toMatchObject({ actions: [], reservation: ['nominate'] })
    expect(planOf({ status: under }, { pod: { nominated: 'full' } })).toMatchObject({
      ...{ actions: ['preempt'], reservation: [] },
    })
    const made = planOf({ status: under, preemptions: [child()] }, { pod: { nominated: 'full' } })
    expect(made).toMatchObject({ actions: [], reservation: [] })
    expect(made.status?.preemptedPodsReservation).toEqual([
      {
        ...{ namespace: 'default', name: 'reservation-c-uid', nodeName: 'spare', phase: 'Available' },
        preemptedPodRef: ref,
      },
    ])
  })

  it('PJ26: when the others have gone the gate opens, and with the node the condition is True', () => {
    const gone = { pods: [sized('d', 1)], pod: { nominated: 'full' } }
    expect(planOf({ status: under, preemptions: [child()] }, gone)).toMatchObject({
      reservation: ['openGate'],
    })
    const { conditions = [] } = planOf({ status: under }).status ?? {}
    const bound = { pods: [], pod: { node: 'full', isGated: false } }
    expect(planOf({ status: { ...under, conditions } }, bound).preemption).toBe('True PreemptComplete')
  })

  it('PJ26: without the option, or for a pod that can go nowhere else, no pod gives way', () => {
    const reservationOptions = { reservationRef: { name: 'reservation-job-uid' } }
    const without = planOf({}, { spec: { reservationOptions } })
    expect(without).toMatchObject({ status: { reason: 'Unschedulable' }, preemption: undefined, actions: [] })
    expect(planOf({}, { pods: [sized('b', 4)] }).status?.reason).toBe('Preempting')
    expect(planOf({}, { pods: [sized('b', 4), sized('c', 4, { node: 'spare' })] }).status).toMatchObject({
      reason: 'Unschedulable',
    })
  })

  it('PJ26: a pod that does not give way ends the job, and the reservation is given up', () => {
    const failed = child({ phase: 'Failed', reason: 'Timeout', message: 'no room' })
    const { status, actions } = planOf(
      { status: under, preemptions: [failed] },
      { pod: { nominated: 'full' } },
    )
    expect(status?.message).toContain('pod default/b does not give way: no room')
    expect(actions).toEqual(['deleteReservation'])
    // It has gone by itself: its room is there.
    expect(
      planOf({ status: under, preemptions: [failed] }, { pod: { nominated: 'full' }, pods: [sized('d', 1)] }),
    ).toMatchObject({ actions: [], reservation: ['openGate'] })
  })

  it('PJ26: nothing begins while the job is paused', () => {
    expect(planOf({}, { spec: { paused: true } })).toMatchObject({ status: { reason: 'Paused' } })
    const nominated = { pod: { nominated: 'full' }, spec: { paused: true } }
    expect(planOf({ status: under }, nominated).actions).toEqual([])
  })

  it('PJ26: what the scheduler removes by itself is told, also for a job without the option', () => {
    const preempted = sized('b', 3, { isPreempted: true, isTerminating: true })
    const told = planOf(
      {},
      {
        ...{ pod: { isGated: false, nominated: 'full' }, pods: [preempted] },
        spec: { reservationOptions: { reservationRef: { name: 'reservation-job-uid' } } },
      },
    )
    expect(told).toMatchObject({ preemption: 'False Preempting', status: { preemptedPodsRef: [ref] } })
    const others = [sized('b', 3, { isTerminating: true })]
    const quiet = planOf({}, { pod: { isGated: false, nominated: 'full' }, pods: others })
    expect(quiet.preemption).toBeUndefined()
  })

  it('PJ26: a job for a pod that gives way is called off when the other job has given up', () => {
    const called = (hasGivenUp: boolean) => planOf({ preemptor: { uid: 'j', hasGivenUp } }).actions
    expect(called(false)).toEqual([])
    expect(called(true)).toEqual(['deleteReservation'])
  })
})
