/** Preemption for the replacement of a job: who gives way, and in which order it happens. */
import { describe, expect, it } from 'vitest'
import type { PodMigrationJobStatus } from '../../api/pod-migration-job.ts'
import { reservations } from '../../api/reservation.ts'
import type { Condition } from '../../kube/conditions.ts'
import { batch, nodes, replacement, sized, web } from '../testing/crowds.ts'
import { presentWith, viewWith } from '../testing/views.ts'
import { argsWith, podWith, worldOf } from '../testing/worlds.ts'
import { decide } from './next.ts'
import { type ReservationView, reservationKeyOf } from './reservation.ts'
import type { JobView, PreemptionFacts, ReservedPod } from './view.ts'
import type { PodFacts } from './world.ts'

const now = Date.UTC(2030, 0, 1, 12)
const key = reservationKeyOf(reservations, 'reservation-job-uid')
const gatedView = (over: Partial<ReservedPod> = {}): ReservationView => ({
  ...{ resource: reservations, key, uid: 'r-uid', resourceVersion: '3', generation: 1 },
  ...{ name: 'reservation-job-uid', status: {}, absentForMs: 0, isOfJob: true },
  parsed: {
    ok: true,
    reservation: {
      ...{ placement: {}, expiresAt: undefined },
      owner: { namespace: 'default', name: 'web-h', uid: undefined },
    },
  },
  pod: presentWith('reservation-job-uid', { node: undefined, isGated: true, ...over }).pod,
})

const running: PodMigrationJobStatus = {
  ...{ phase: 'Running', reason: 'Admitted', message: 'm', mode: 'ReservationFirst' },
  startTime: new Date(now - 1_000).toISOString(),
  source: { uid: 'uid-web-0', nodeName: 'n1', workload: web.key },
}
const victim = sized('b', 3)
const ref = { apiVersion: 'v1', kind: 'Pod', namespace: 'default', name: 'b', uid: 'uid-b' }
const preemptingSince: Condition = {
  ...{ type: 'Preemption', status: 'False', reason: 'Preempting', message: 'm', observedGeneration: 1 },
  lastTransitionTime: '2030-01-01T11:59:59Z',
} as const
const under: PodMigrationJobStatus = {
  ...{ ...running, preemptionNodeName: 'full', preemptedPodsRef: [ref], conditions: [preemptingSince] },
}
const child = (status: PodMigrationJobStatus = {}): PreemptionFacts => ({
  ...{ job: 'c-uid', pod: { namespace: 'default', name: 'b', uid: 'uid-b' }, status },
  reservation: { phase: 'Available', nodeName: 'spare' },
})

interface Differences {
  readonly spec?: object
  readonly pod?: Partial<ReservedPod>
  readonly own?: Partial<PodFacts>
  readonly pods?: readonly PodFacts[]
  readonly mayLook?: boolean
}

function planOf(
  over: Partial<JobView>,
  { spec = {}, pod = {}, own = {}, pods = [victim], mayLook = true }: Differences = {},
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
  const mine = replacement({ nominated, node: its, ...own })
  const plan = decide([view], {
    ...{ world: worldOf([...pods, source, mine], { nodes }), reservations: [gatedView(held)] },
    ...{ config: { ok: true, args: argsWith() }, now, tokens: 9, mayLook },
  })
  const { status } = plan.statuses[0] ?? {}
  const condition = status?.conditions?.find(({ type }) => type === 'Preemption')
  const [action] = plan.reservations.actions
  return {
    status,
    preemption: condition && `${condition.status} ${condition.reason}`,
    actions: plan.actions.map(({ type }) => type),
    reservation: plan.reservations.actions.map(({ type }) => type),
    node: action?.type === 'nominate' ? action.node : undefined,
    againAfterMs: plan.againAfterMs,
  }
}
const bystander = { reservationOptions: { reservationRef: { name: 'reservation-job-uid' } } }

describe('the gate of a replacement for which the scheduler would remove others', () => {
  const lower = sized('a', 1)
  const gateWith = (pods: readonly PodFacts[], pod: Partial<ReservedPod> = {}, own: Partial<PodFacts> = {}) =>
    planOf(
      { preemptor: { isOver: false, isPaused: false, source: 's' } },
      { spec: bystander, pods, pod, own },
    )

  it('opens when no pod with a lower priority runs, or its class preempts never, whatever room there is', () => {
    expect(gateWith([]).reservation).toEqual(['openGate'])
    expect(gateWith([sized('a', 9, { priority: 9 })]).reservation).toEqual(['openGate'])
    // Placeholders may go at any time.
    expect(gateWith([sized('a', 9, { priority: -11 })]).reservation).toEqual(['openGate'])
    expect(gateWith([sized('a', 9, { priority: -10 })]).reservation).toEqual([])
    expect(gateWith([sized('a', 9)], {}, { preempts: false }).reservation).toEqual(['openGate'])
  })

  it('the pod is nominated for a node with room first, and the gate opens then', () => {
    expect(gateWith([lower])).toMatchObject({ reservation: ['nominate'], node: 'full' })
    expect(gateWith([lower], { nominated: 'full' }).reservation).toEqual(['openGate'])
    // The room has gone meanwhile: the scheduler keeps it for this pod no more.
    const gone = gateWith([lower, sized('b', 2)], { nominated: 'full' })
    expect(gone).toMatchObject({ reservation: ['nominate'], node: undefined })
    expect(gateWith([lower, sized('b', 2)]).reservation).toEqual([])
    const waits = sized('b', 2, { node: undefined, nominated: 'full' })
    expect(gateWith([lower, waits]).reservation).toEqual([])
  })

  it('stays closed for a pod whose place only the scheduler can judge, and the job says what to do', () => {
    const { status, reservation } = planOf({}, { own: { isUnjudged: true }, pods: [lower] })
    expect(reservation).toEqual([])
    expect(status?.message).toContain('leave preemptionOptions out')
    expect(planOf({}, { own: { isUnjudged: true }, pods: [] }).reservation).toEqual(['openGate'])
  })

  it('opens when the job does not preempt any more', () => {
    expect(planOf({}, { spec: bystander }).reservation).toEqual(['openGate'])
  })
})

describe('preemption for the replacement of a job', () => {
  it('PJ26: the status names node and pods first, then the pod is nominated, then the others get their jobs', () => {
    const first = planOf({})
    expect(first).toMatchObject({ preemption: 'False Preempting', actions: [], reservation: [] })
    expect(first.status).toMatchObject({ preemptionNodeName: 'full', preemptedPodsRef: [ref] })
    expect(first.node).toBeUndefined()
    expect(planOf({ status: under })).toMatchObject({ actions: [], reservation: ['nominate'], node: 'full' })
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
    const bound = { pods: [], pod: { node: 'full', isGated: false } }
    expect(planOf({ status: under }, bound).preemption).toBe('True PreemptComplete')
  })

  it('PJ26: for a pod that can go nowhere else no pod gives way', () => {
    expect(planOf({}, { pods: [sized('b', 4)] }).status?.reason).toBe('Preempting')
    expect(planOf({}, { pods: [sized('b', 4), sized('c', 4, { node: 'spare' })] }).status).toMatchObject({
      reason: 'Unschedulable',
    })
  })

  it('pods that give way are looked for at most once in a while', () => {
    expect(planOf({}, { mayLook: false })).toMatchObject({
      ...{ status: { reason: 'Unschedulable' }, againAfterMs: 1_000 },
    })
  })

  const nominated = { pod: { nominated: 'full' } }

  it('PJ26: a victim that any other hand removes gives way, too, and its room is waited for', () => {
    const going = { ...nominated, pods: [{ ...victim, isTerminating: true }] }
    for (const phase of ['Failed', 'Aborted', 'Pending'] as const) {
      const { status, ...plan } = planOf({ status: under, preemptions: [child({ phase })] }, going)
      expect(plan).toMatchObject({ actions: [], reservation: [] })
      expect(status).toMatchObject({ phase: 'Running', reason: 'Preempting', preemptionNodeName: 'full' })
    }
    expect(planOf({ status: under }, going).actions).toEqual([])
  })

  it('PJ26: if a pod does not give way the others are called off, and other pods are asked, but not that one again', () => {
    const failed = child({ phase: 'Failed', reason: 'Timeout', message: 'no room' })
    const { status, actions, preemption } = planOf({ status: under, preemptions: [failed] }, nominated)
    expect(actions).toEqual([])
    expect(status).toMatchObject({ phase: 'Running', reason: 'Unschedulable', preemptedPodsRef: [] })
    expect(status).not.toHaveProperty('preemptionNodeName')
    expect(preemption).toBe('False Unschedulable')
    const pods = [sized('b', 2), sized('c', 2)]
    const again = planOf({ status: under, preemptions: [failed] }, { ...nominated, pods })
    expect(again.status?.preemptedPodsRef).toMatchObject([{ uid: 'uid-c' }])
  })

  it('PJ26: the announcement ends when its node is of no use, or another one has room; who has given way stays named', () => {
    const two = { ...under, preemptedPodsRef: [ref, { ...ref, name: 'c', uid: 'uid-c' }] }
    const c = sized('c', 1)
    // `b` has gone, and its room is enough: `c` may stay.
    const enough = planOf({ status: two }, { ...nominated, pods: [c] })
    expect(enough.reservation).toEqual(['openGate'])
    expect(enough.status).toMatchObject({ preemptionNodeName: 'full', preemptedPodsRef: [ref] })
    // Another pod has taken the room of `b`.
    const taken = planOf({ status: two }, { ...nominated, pods: [c, sized('d', 3, { priority: 9 })] })
    expect(taken.status).toMatchObject({ reason: 'Unschedulable', preemptedPodsRef: [ref] })
    expect(taken).toMatchObject({ reservation: ['nominate'], node: undefined })
    const elsewhere = planOf(
      { status: under, preemptions: [child({ phase: 'Running' })] },
      { ...nominated, own: { placement: {} } },
    )
    expect(elsewhere).toMatchObject({
      reservation: ['nominate'],
      node: 'spare',
      preemption: 'False Scheduling',
    })
    expect(elsewhere.status).toMatchObject({ preemptedPodsRef: [] })
  })

  it('PJ26: a pod whose job waits keeps its place only until another one can go at once', () => {
    const waits = child({ phase: 'Pending', reason: 'DisruptionBudget' })
    const [b, c] = [
      sized('b', 2, { isReady: false, owner: { ...batch, key: 'Deployment/default/x' } }),
      sized('c', 2),
    ]
    const alone = planOf(
      { status: under, preemptions: [waits] },
      { ...nominated, pods: [b, { ...c, priority: 9 }] },
    )
    expect(alone.status).toMatchObject({ reason: 'Preempting', preemptedPodsRef: [ref] })
    const other = planOf({ status: under, preemptions: [waits] }, { ...nominated, pods: [b, c] })
    expect(other.status?.preemptedPodsRef).toMatchObject([{ uid: 'uid-c' }])
  })

  it('a kind of before, which drops the announcement, fails the job', () => {
    const { preemptionNodeName: _, preemptedPodsRef: __, ...pruned } = under
    const { status, actions } = planOf({ status: pruned })
    expect(status?.message).toContain('apply the kinds again')
    expect(actions).toEqual(['deleteReservation'])
  })

  it('the status has no more Reservations than its kind allows, and those of the present pods', () => {
    const many = Array.from({ length: 12 }, (_, index) => ({
      ...child({ phase: 'Aborted' }),
      ...{ job: `c${index}`, pod: { namespace: 'default', name: `p${index}`, uid: `uid-p${index}` } },
    }))
    const mine = { ...child({ phase: 'Running' }), job: 'z' }
    const { status } = planOf({ status: under, preemptions: [...many, mine] }, nominated)
    expect(status?.preemptedPodsReservation).toHaveLength(8)
    expect(status?.preemptedPodsReservation?.[0]?.preemptedPodRef).toEqual(ref)
  })

  it('PJ26: nothing begins while the job is paused', () => {
    expect(planOf({}, { spec: { paused: true } })).toMatchObject({ status: { reason: 'Paused' } })
    expect(planOf({ status: under }, { ...nominated, spec: { paused: true } }).actions).toEqual([])
  })

  it('PJ26: what the scheduler removes by itself is told, also for a job without the option', () => {
    const preempted = sized('b', 3, { isPreempted: true, isTerminating: true })
    const told = planOf(
      {},
      { pod: { isGated: false, nominated: 'full' }, pods: [preempted], spec: bystander },
    )
    expect(told).toMatchObject({ preemption: 'False Preempting', status: { preemptedPodsRef: [ref] } })
    const others = [sized('b', 3, { isTerminating: true })]
    const quiet = planOf({}, { pod: { isGated: false, nominated: 'full' }, pods: others })
    expect(quiet.preemption).toBeUndefined()
  })

  it('PJ26: the job for a pod that gives way begins in the place of the other job', () => {
    const reasonWith = (preemptor: JobView['preemptor']) => {
      const source = podWith('web-0', { owner: web, priority: 9 })
      const mine = { key: 'c', name: 'c', uid: 'c-uid', pod: victim, preemptor }
      const views = [
        viewWith({ mode: 'ReservationFirst' }, { pod: source, status: under }),
        viewWith({ mode: 'ReservationFirst', podRef: { namespace: 'default', name: 'b' } }, mine),
      ]
      const args = argsWith({ maxMigratingGlobally: 1 })
      const plan = decide(views, {
        ...{ world: worldOf([source, victim], { nodes }), config: { ok: true, args }, now, tokens: 9 },
      })
      return plan.statuses.find(({ view }) => view.key === 'c')?.status.reason
    }
    expect(reasonWith({ isOver: false, isPaused: false, source: 'uid-web-0' })).toBe('Admitted')
    expect(reasonWith(undefined)).toBe('GlobalBudget')
  })

  it('PJ26: a job for a pod that gives way is called off when the other job does not wait for it any more', () => {
    const called = (isOver: boolean, status = running, isPaused = false) =>
      planOf({ preemptor: { isOver, isPaused, source: 's' }, status }, { pods: [], pod: { node: 'n2' } })
    expect(called(false).actions).toEqual([])
    expect(called(true).actions).toEqual(['deleteReservation'])
    expect(called(false, {}).status).toMatchObject({ phase: 'Running' })
    expect(called(true, {}).status).toMatchObject({ phase: 'Aborted', reason: 'PreemptionOver' })
    // A job that is paused pauses those for it.
    expect(called(false, {}, true).status).toMatchObject({ phase: 'Pending', reason: 'Paused' })
  })
})
