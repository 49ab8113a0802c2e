import { describe, expect, it } from 'vitest'
import { lowestDeletionCost, type PodMigrationJobStatus } from '../../api/pod-migration-job.ts'
import { presentWith, viewWith } from '../testing/views.ts'
import { argsWith, podWith, worldOf } from '../testing/worlds.ts'
import { decide } from './next.ts'
import type { JobView, ReservationFacts, ReservedPod } from './view.ts'

const now = Date.UTC(2030, 0, 1, 12)
const at = (ms: number) => new Date(now + ms).toISOString()
const owner = { type: 'workload', kind: 'Deployment', key: 'Deployment/default/web' } as const
const pod = podWith('web-0', { owner })
const running: PodMigrationJobStatus = {
  ...{ phase: 'Running', reason: 'Admitted', message: 'm', mode: 'ReservationFirst', startTime: at(-1_000) },
  source: { uid: pod.uid, nodeName: 'n1', workload: owner.key },
}
const name = 'reservation-job-uid'
const present = (over: Partial<ReservedPod> = {}): ReservationFacts => presentWith(name, over)
const evicting: PodMigrationJobStatus['conditions'] = [
  {
    ...{ type: 'Eviction', status: 'False', reason: 'Evicting', message: 'm' },
    ...{ lastTransitionTime: at(0), observedGeneration: 1 },
  },
]

const planOf = (spec: object, over: Partial<JobView>) => {
  const reservationOptions = over.reservation?.type === 'present' ? { reservationRef: { name } } : {}
  const view = viewWith(
    { mode: 'ReservationFirst', reservationOptions, ...spec },
    { pod, status: running, ...over },
  )
  const config = { ok: true, args: argsWith() } as const
  const plan = decide([view], { world: worldOf([pod]), config, now, tokens: 9 })
  return { status: plan.statuses[0]?.status, actions: plan.actions.map(({ type }) => type) }
}

describe('ReservationFirst', () => {
  it('the reservation is named first, and created by a later pass, under the same name each time', () => {
    const first = planOf({}, {})
    expect(first.status).toMatchObject({ reservation: { name }, status: 'ReservationCreated' })
    expect(first.actions).toEqual([])
    expect(planOf({}, { status: { ...running, reservation: { name } } }).actions).toEqual([
      'createReservation',
    ])
  })

  it('PJ07: the pod is left alone until the reservation has a node, is ready, and the workload is well', () => {
    const reasons = [
      present({ node: undefined, isReady: false }),
      present({ node: undefined, isReady: false, unschedulable: '0/3 nodes' }),
      present({ isReady: false }),
    ].map(reservation => planOf({}, { reservation }))
    expect(reasons.map(({ status }) => status?.reason)).toEqual([
      'Scheduling',
      'Unschedulable',
      'WaitForBoundPodReady',
    ])
    expect(reasons.flatMap(({ actions }) => actions)).toEqual([])
    expect(planOf({}, { reservation: present(), hasUnready: true }).status?.reason).toBe('WaitForWorkload')
    const announced = planOf({}, { reservation: present() })
    expect([announced.status?.reason, announced.actions]).toEqual(['EvictionComing', []])
    const status = { ...running, conditions: evicting }
    expect(planOf({}, { reservation: present(), status }).actions).toEqual(['adopt'])
    expect(planOf({}, { reservation: present(), status, hasUnready: true }).actions).toEqual([])
  })

  it('PJ12: with the pod gone and the reservation adopted the job has succeeded', () => {
    const { status } = planOf({}, { pod: undefined, reservation: present({ isAdopted: true }) })
    expect(status).toMatchObject({ phase: 'Succeed', nodeName: 'n2', podRef: { name, uid: 'r' } })
  })

  it('PJ25: a shorter grace period is asked for only once the ReplicaSet has chosen the pod', () => {
    const asked = (over: object) =>
      planOf(
        { deleteOptions: { gracePeriodSeconds: 5 } },
        { pod: { ...pod, ...over }, reservation: present({ isAdopted: true }) },
      ).actions
    expect(asked({})).toEqual([])
    expect(asked({ isTerminating: true, graceSeconds: 30 })).toEqual(['shorten'])
    expect(asked({ isTerminating: true, graceSeconds: 5 })).toEqual([])
  })

  it('PJ11: no room, an abort, and a pod that goes by itself: the reservation is given up first, and then the job ends', () => {
    const late = { ...running, startTime: at(-600_000) }
    const unschedulable = {
      ...late,
      reservation: { name, uid: 'r' },
      conditions: [{ ...evicting[0], type: 'ReservationScheduled', reason: 'Unschedulable' }],
    } as PodMigrationJobStatus
    expect(planOf({}, { status: unschedulable, reservation: present({ node: undefined }) }).actions).toEqual([
      'deleteReservation',
    ])
    expect(planOf({}, { status: unschedulable }).status).toMatchObject({
      phase: 'Failed',
      reason: 'Unschedulable',
    })
    const begun = { ...running, reservation: { name, uid: 'r' } }
    expect(planOf({ abort: true }, { status: begun, reservation: present() }).actions).toEqual([
      'deleteReservation',
    ])
    expect(planOf({ abort: true }, { status: begun }).status).toMatchObject({ phase: 'Aborted' })
    expect(planOf({}, { status: begun, pod: undefined, reservation: present() }).actions).toEqual([
      'deleteReservation',
    ])
    expect(planOf({}, { status: begun, pod: undefined }).status).toMatchObject({
      phase: 'Failed',
      reason: 'MissingPod',
    })
  })

  it('an abort waits until it is certain whether the reservation exists', () => {
    const status = { ...running, reservation: { name } }
    const absent = (seenForMs: number) =>
      planOf({ abort: true }, { status, reservation: { type: 'absent', seenForMs } }).status
    expect(absent(100)).toMatchObject({ phase: 'Running', reason: 'Releasing' })
    expect(absent(60_000)).toMatchObject({ phase: 'Aborted' })
  })

  it('after the adoption there is no way back', () => {
    const aborted = planOf({ abort: true }, { reservation: present({ isAdopted: true }) })
    expect([aborted.status?.phase, aborted.actions]).toEqual(['Running', []])
  })

  it.each([undefined, '-5'])('a pod that stays gets its deletion cost of before again: %s', deletionCost => {
    const before = { ...pod, deletionCost }
    const announced = planOf({}, { pod: before, reservation: present() }).status ?? {}
    expect(announced.source).toEqual({ ...running.source, ...(deletionCost && { deletionCost }) })
    const cheap = { ...pod, deletionCost: lowestDeletionCost }
    // The adoption has not come about, and its pod is given up first.
    const given = planOf({ abort: true }, { pod: cheap, reservation: present(), status: announced })
    expect(given.actions).toEqual(['deleteReservation'])
    const restored = planOf({ abort: true }, { pod: cheap, status: announced })
    expect([restored.status?.phase, restored.actions]).toEqual(['Running', ['restoreDeletionCost']])
    expect(planOf({ abort: true }, { pod: before, status: announced }).status?.phase).toBe('Aborted')
  })

  it('a deletion cost that the job has not changed is left as it is', () => {
    const cheap = { ...pod, deletionCost: lowestDeletionCost }
    expect(planOf({ abort: true }, { pod: cheap }).status?.phase).toBe('Aborted')
    const announced = planOf({}, { pod: cheap, reservation: present() }).status ?? {}
    expect(planOf({ abort: true }, { pod: cheap, status: announced }).status?.phase).toBe('Aborted')
    // The workload has one pod too many: it is to delete this one.
    const had = { ...running, conditions: evicting, podRef: { namespace: 'default', name, uid: 'r' } }
    expect(planOf({}, { pod: cheap, status: had, reservation: { type: 'foreign' } }).status).toMatchObject({
      phase: 'Failed',
    })
  })

  it('a replacement that the workload has had once is never given up, although its ReplicaSet has released it', () => {
    const had: PodMigrationJobStatus = {
      ...{ ...running, status: 'Complete', conditions: evicting, reservation: { name, uid: 'r' } },
      podRef: { namespace: 'default', name, uid: 'r' },
    }
    const released = { pod: undefined, reservation: { ...presentWith(name), isBound: true } }
    for (const phase of ['Succeed', 'Failed', 'Aborted'] as const)
      expect(planOf({}, { ...released, status: { ...had, phase, completionTime: at(0) } }).actions).toEqual(
        [],
      )
    const ended = planOf({ abort: true }, { ...released, status: had })
    expect([ended.status?.phase, ended.actions]).toEqual(['Succeed', []])
    // The other pod, too, is taken out of its ReplicaSet.
    const going = planOf(
      {},
      { pod: { ...pod, owner: { type: 'none' } }, reservation: present(), status: had },
    )
    expect([going.status?.phase, going.actions]).toEqual(['Running', []])
  })

  it('a reservation that somebody deletes, or whose name is taken, ends the job', () => {
    const status = { ...running, reservation: { name, uid: 'r' } }
    expect(planOf({}, { status }).status).toMatchObject({ phase: 'Failed', reason: 'MissingReservation' })
    expect(planOf({}, { reservation: { type: 'foreign' } }).status).toMatchObject({
      reason: 'FailedCreateReservation',
    })
  })

  it('PJ29: a rollout holds the adoption', () => {
    const status = { ...running, conditions: evicting }
    expect(planOf({}, { status, reservation: present(), isRolling: true }).actions).toEqual([])
  })

  const ends = (reservation: ReservationFacts) => {
    const { status, actions } = planOf({}, { reservation })
    return [status?.phase, status?.reason, actions]
  }

  it('a Reservation that cannot be used ends the job; one of a user stays', () => {
    const users = { isOwned: false }
    const failure = { reason: 'Expired', message: 'm' }
    expect(ends(presentWith(name, {}, { ...users, failure }))).toEqual(['Failed', 'ReservationExpired', []])
    expect(ends(presentWith(name, { node: 'n1' }, users))).toEqual(['Failed', 'ForbiddenMigratePod', []])
    expect(ends(presentWith(name, { isAdopted: true }, users))).toEqual(['Failed', 'InvalidReservation', []])
    const waits = planOf({}, { reservation: presentWith(name, {}, { ...users, isTaken: true }) })
    expect([waits.status?.phase, waits.status?.reason]).toEqual(['Running', 'WaitForReservation'])
  })

  it('PJ09: a Reservation of a user that is missing ends the job when that lasts', () => {
    const missing = (seenForMs: number) =>
      planOf(
        { reservationOptions: { reservationRef: { name: 'room' } } },
        { reservation: { type: 'absent', seenForMs } },
      )
    expect(missing(100).status).toMatchObject({ phase: 'Running', reason: 'MissingReservation' })
    expect(missing(60_000).status).toMatchObject({ phase: 'Failed', reason: 'MissingReservation' })
    expect(missing(60_000).actions).toEqual([])
  })

  it('PJ10: the job refers to its Reservation before anything else', () => {
    const plan = planOf({ reservationOptions: {} }, { reservation: present() })
    expect([plan.status?.reason, plan.actions]).toEqual(['Creating', ['referTo']])
  })

  it('a workload that keeps both pods, as one that is scaled up meanwhile, ends the job, and the other pod gets its deletion cost back', () => {
    const status = {
      ...running,
      startTime: at(-400_000),
      conditions: evicting,
      podRef: { namespace: 'default', name, uid: 'r' },
    }
    const kept = (deletionCost: string | undefined) =>
      planOf({}, { pod: { ...pod, deletionCost }, status, reservation: present({ isAdopted: true }) })
    const lowered = kept(lowestDeletionCost)
    expect([lowered.status?.phase, lowered.actions]).toEqual(['Running', ['restoreDeletionCost']])
    const { status: end, actions } = kept(undefined)
    expect([end?.phase, end?.reason, actions]).toEqual(['Failed', 'Timeout', []])
  })

  it('a job whose pod had no node says whether it has one', () => {
    const condition = (view: Partial<JobView>) =>
      planOf({}, view).status?.conditions?.find(({ type }) => type === 'PodScheduled')
    const { nodeName: _, ...source } = running.source ?? { uid: '' }
    const status = { ...running, source }
    const pending = { ...pod, node: undefined }
    expect(condition({ status, pod: pending })).toMatchObject({ status: 'False', reason: 'Unschedulable' })
    expect(condition({ status })).toMatchObject({ status: 'True', reason: 'Scheduled' })
    expect(condition({})).toBeUndefined()
  })
})
