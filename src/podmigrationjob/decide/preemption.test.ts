/** Preemption for the replacement of a job: who gives way, and in which order it happens. */
import { describe, expect, it } from 'vitest'
import type { PodMigrationJobStatus } from '../../api/pod-migration-job.ts'
import { reservations } from '../../api/reservation.ts'
import { presentWith, viewWith } from '../testing/views.ts'
import { argsWith, podWith, worldOf } from '../testing/worlds.ts'
import { gatesOf } from './gate.ts'
import { decide } from './next.ts'
import { type ReservationView, reservationKeyOf } from './reservation.ts'
import { victimsFor } from './victims.ts'
import type { JobView, PreemptionFacts, ReservedPod } from './view.ts'
import type { NodeRoom, PodFacts } from './world.ts'

const now = Date.UTC(2030, 0, 1, 12)
const node = (name: string, cpu: number, over: Partial<NodeRoom> = {}): NodeRoom => ({
  ...{ name, labels: {}, taints: [], isSchedulable: true },
  allocatable: { cpu, pods: 10 },
  ...over,
})
const web = { type: 'workload', kind: 'Deployment', key: 'Deployment/default/web' } as const
const batch = { type: 'workload', kind: 'Deployment', key: 'Deployment/default/batch' } as const
const sized = (name: string, cpu: number, over: Partial<PodFacts> = {}): PodFacts =>
  podWith(name, { owner: batch, node: 'full', requests: { cpu, pods: 1 }, ...over })
/** The pod of the Reservation. */
const replacement = (over: Partial<PodFacts> = {}) =>
  sized('reservation-job-uid', 2, {
    ...{ uid: 'r', owner: { type: 'none' }, node: undefined, priority: 9 },
    placement: { nodeSelector: { big: 'yes' } },
    ...over,
  })
const big = { labels: { big: 'yes' } }
const nodes = [node('full', 4, big), node('spare', 4)]
const chosen = (pods: readonly PodFacts[], over: readonly NodeRoom[] = nodes, args = {}, own = {}) => {
  const pod = replacement(own)
  const found = victimsFor(pod, worldOf([...pods, pod], { nodes: over }), argsWith(args))
  return found && { node: found.node, pods: found.pods.map(({ name }) => name) }
}

describe('who gives way', () => {
  const a = sized('a', 2, { priority: 1 })
  const b = sized('b', 2)

  it('the least important pods of a lower priority, and no more than needed', () => {
    expect(chosen([a, b])).toEqual({ node: 'full', pods: ['b'] })
    expect(chosen([a, { ...b, priority: 2 }])).toEqual({ node: 'full', pods: ['a'] })
    expect(
      chosen([
        { ...a, priority: 0 },
        { ...b, evictionCost: 5 },
      ]),
    ).toEqual({ node: 'full', pods: ['a'] })
  })

  it.each([
    ['has the same priority', { priority: 9 }],
    ['is critical for the system', { isSystemCritical: true }],
    ['may never be evicted', { evictionCost: 2_147_483_647 }],
    ['has no Deployment that could adopt a replacement', { owner: { type: 'none' } }],
    ['belongs to another tenant', { namespace: 'other' }],
    ['is going already', { isTerminating: true }],
    ['keeps its data on the node', { hasLocalStorage: true }],
  ] as const)('no pod that %s', (_, over) => {
    expect(
      chosen([
        { ...a, ...over },
        { ...b, ...over },
      ]),
    ).toBeUndefined()
  })

  it('pods of other namespaces only if the configuration says so', () => {
    const other = { namespace: 'other' }
    expect(
      chosen(
        [
          { ...a, ...other },
          { ...b, ...other },
        ],
        nodes,
        { preemptOtherNamespaces: true },
      ),
    ).toEqual({
      ...{ node: 'full', pods: ['b'] },
    })
  })

  it('nobody if there is no room elsewhere for the pods that give way', () => {
    expect(chosen([a, b], [node('full', 4, big)])).toBeUndefined()
    expect(chosen([a, b], [node('full', 4, big), node('spare', 1)])).toBeUndefined()
    expect(chosen([a, b, sized('c', 3, { node: 'spare', priority: 9 })])).toBeUndefined()
    // Two pods that give way do not count on the same room.
    const small = [sized('d', 1), sized('e', 1), sized('f', 2, { priority: 9 })]
    expect(chosen(small, [node('full', 4, big), node('spare', 1)])).toBeUndefined()
    expect(chosen(small)?.pods).toEqual(['d', 'e'])
  })

  it('nobody on a node that the replacement could not use in any case', () => {
    expect(chosen([a, b], [node('full', 4), node('spare', 4)])).toBeUndefined()
    expect(
      chosen([a, b], [node('full', 4, { ...big, isSchedulable: false }), node('spare', 4)]),
    ).toBeUndefined()
    const taints = [{ key: 'own', effect: 'NoSchedule' }]
    expect(chosen([a, b], [node('full', 4, { ...big, taints }), node('spare', 4)])).toBeUndefined()
    expect(chosen([a, b], [node('full', 1, big), node('spare', 4)])).toBeUndefined()
  })

  it('the node whose most important victim is the least important, then the one with fewer', () => {
    const two = [node('full', 2, big), node('other', 2, big), node('spare', 8)]
    const here = sized('here', 2, { priority: 3 })
    expect(chosen([here, sized('there', 2, { node: 'other', priority: 2 })], two)?.node).toBe('other')
    const halves = ['x', 'y'].map(name => sized(name, 1, { node: 'other', priority: 3 }))
    expect(chosen([here, ...halves], two)?.node).toBe('full')
  })
})

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
