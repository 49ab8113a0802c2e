import { describe, expect, it } from 'vitest'
import { type ParsedArgs, parseArgs } from '../../api/migration-controller-args.ts'
import type { JobMode, PodMigrationJobStatus } from '../../api/pod-migration-job.ts'
import { presentWith, viewWith } from '../testing/views.ts'
import { argsWith, podWith, worldOf } from '../testing/worlds.ts'
import { decide } from './next.ts'
import type { JobView } from './view.ts'
import type { PodFacts } from './world.ts'

const now = Date.UTC(2030, 0, 1, 12)
const owner = { type: 'workload', kind: 'Deployment', key: 'Deployment/default/web' } as const
const podOf = (over: Partial<PodFacts> = {}) => podWith('web-0', { owner, ...over })
const running: PodMigrationJobStatus = {
  ...{ phase: 'Running', reason: 'Admitted', message: 'm', startTime: new Date(now - 1_000).toISOString() },
  source: { uid: 'uid-web-0', nodeName: 'n1', workload: owner.key },
}
const announced = (reason: string): PodMigrationJobStatus => ({
  ...running,
  conditions: [
    {
      ...{ type: 'Eviction', status: 'False', reason, message: 'm', observedGeneration: 1 },
      lastTransitionTime: new Date(now).toISOString(),
    },
  ],
})
const replacement = presentWith('reservation-job-uid')
const named = { name: 'reservation-job-uid' }

/** Each act of an admitted job that is due. */
const acts: readonly (readonly [string, JobMode, Partial<JobView>])[] = [
  ['evict', 'EvictDirectly', { status: announced('EvictionComing') }],
  ['evict', 'EvictDirectly', { status: announced('FailedEvict') }],
  ['createMigration', 'Live', { status: { ...running, migration: { name: 'job-job-uid' } } }],
  ['createReservation', 'ReservationFirst', { status: { ...running, reservation: named } }],
  [
    'adopt',
    'ReservationFirst',
    {
      status: { ...announced('EvictionComing'), reservation: { ...named, uid: 'r' } },
      reservation: replacement,
    },
  ],
]

const planOf = (mode: JobMode, over: Partial<JobView>, args: ParsedArgs = { ok: true, args: argsWith() }) => {
  const reservationOptions = over.reservation ? { reservationRef: named } : {}
  const view = viewWith({ mode, reservationOptions }, { pod: podOf(), ...over })
  const pods = view.pod === undefined ? [] : [view.pod]
  const { statuses, actions } = decide([view], { world: worldOf(pods), config: args, now, tokens: 9 })
  return { status: statuses[0]?.status, actions: actions.map(({ type }) => type) }
}

describe.each(acts)('before %s, mode %s, the rules are asked again', (type, mode, over) => {
  it('by those of the admission it is done', () => {
    expect(planOf(mode, over).actions).toEqual([type])
  })

  it.each([
    ['Disabled', parseArgs({ enabled: false })],
    ['DryRun', parseArgs({ dryRun: true })],
    ['InvalidConfiguration', parseArgs({ enabled: 1 })],
  ])('%s: it waits', (reason, args) => {
    const { status, actions } = planOf(mode, over, args)
    expect(actions).toEqual([])
    expect(status).toMatchObject({ phase: 'Running', reason })
  })

  it('a pod that is never to be removed stays, and the job ends; a reservation is given up first', () => {
    const pod = podOf({ evictionCost: 2_147_483_647 })
    const { status, actions } = planOf(mode, { ...over, pod })
    expect(actions).toEqual(type === 'adopt' ? ['deleteReservation'] : [])
    const ended = type === 'adopt' ? planOf(mode, { pod, ...(status && { status }) }).status : status
    expect(ended).toMatchObject({ phase: 'Failed', reason: 'ForbiddenMigratePod' })
  })
})
