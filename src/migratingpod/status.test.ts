import { describe, expect, it } from 'vitest'
import type { BackupPodSetStatus } from '../api/backuppodset.ts'
import type { MigratingPodStatus } from '../api/migrating-pod.ts'
import { statusOf } from './status.ts'
import type { MigratingPodView, MigrationFacts, PodFacts } from './view.ts'

const now = Date.parse('2030-01-01T00:00:00Z')

const pod = (name: string, over: Partial<PodFacts> = {}): PodFacts => ({
  ...{ name, node: 'n1', isPrimary: true, epoch: 1, isLeaving: false, runs: true },
  ...over,
})
const target = (name: string, over: Partial<PodFacts> = {}): PodFacts =>
  pod(name, { isPrimary: false, epoch: 0, node: 'n2', ...over })

const view = (
  pods: readonly PodFacts[],
  over: Partial<MigratingPodView> & {
    readonly before?: MigratingPodStatus
    readonly told?: BackupPodSetStatus
  } = {},
): MigratingPodView => {
  const { before, told, ...rest } = over
  return {
    object: {
      metadata: { name: 'web', namespace: 'shop', uid: 'u', resourceVersion: '1', generation: 3 },
      spec: { template: { spec: { containers: [] } } },
      ...(before && { status: before }),
    },
    set: { type: 'ours', generation: 1, status: told },
    pods,
    migrations: [],
    ...rest,
  }
}

const migration = (phase: MigrationFacts['phase'], over: Partial<MigrationFacts> = {}): MigrationFacts => ({
  ...{ name: 'm', phase, from: 'web-0', to: 'web-1', endedAt: undefined, downtimeMs: undefined },
  ...over,
})

const ran: MigratingPodStatus = { state: 'Running', activePod: 'web-0' }

describe('D16.suspend: the state of a MigratingPod that is not to run', () => {
  const suspended = (status?: 'True' | 'False') => {
    const word = { type: 'Suspended', reason: 'MemoryAtRisk', message: 'why', lastTransitionTime: '' }
    const told = {
      retainedSlots: [
        {
          ...{ slot: 0, pod: 'web-0', since: '', generation: 7, keptOn: ['b'] },
          savedAt: '2030-01-01T00:00:00Z',
        },
      ],
      ...(status && { conditions: [{ ...word, status, observedGeneration: 1 }] }),
    }
    const { object, ...rest } = view([], { before: ran, told })
    return statusOf({ ...rest, object: { ...object, spec: { ...object.spec, suspend: true } } }, now)
  }

  it('repeats what the set says of it, and which memory is kept', () => {
    expect(suspended()).toMatchObject({ state: 'Suspending' })
    expect(suspended('False')).toMatchObject({ state: 'Suspending' })
    expect(suspended('True')).toMatchObject({ state: 'Suspended', generation: 7 })
    const words = suspended('True').conditions?.map(({ type, reason }) => `${type} ${reason}`)
    expect(words).toContain('Suspended MemoryAtRisk')
    expect(statusOf(view([pod('web-0')]), now).conditions?.map(({ type }) => type)).not.toContain('Suspended')
  })
})

it('MP-28: it repeats how far its clone is, and says nothing of that without one', () => {
  const word = { type: 'Cloned', reason: 'NoCloneSource', message: 'why', lastTransitionTime: '' }
  const told = { conditions: [{ ...word, status: 'False' as const, observedGeneration: 1 }] }
  const { object, ...rest } = view([], { told })
  const conditions = (spec: object) =>
    statusOf({ ...rest, object: { ...object, spec: { ...object.spec, ...spec } } }, now).conditions ?? []
  expect(conditions({ clonePod: 'other-0' })).toContainEqual(
    expect.objectContaining({ type: 'Cloned', status: 'False', reason: 'NoCloneSource' }),
  )
  expect(conditions({}).map(({ type }) => type)).not.toContain('Cloned')
})

describe('MP-29: a MigratingPod whose app may end with success', () => {
  const completion = { pod: 'web-1', at: '2030-01-01T00:00:00Z' }

  it('is Completed once its set says so, for good', () => {
    const done = statusOf(view([pod('web-1', { runs: false })], { before: ran, told: { completion } }), now)
    expect(done).toMatchObject({ state: 'Completed', activePod: 'web-1', completion })
    // Its set and its pod are gone.
    const later = statusOf(view([], { before: done, set: { type: 'absent' } }), now)
    expect(later).toMatchObject({ state: 'Completed', activePod: 'web-1', completion })
  })

  const lost = (from: string, reason: string) => ({
    lastFailover: { slot: 0, from, to: 'web-9', reason, seconds: 1, at: '2030-01-01T00:00:00Z' },
  })
  it('counts each pod once whose app has ended by itself', () => {
    const first = statusOf(view([pod('web-1')], { before: ran, told: lost('web-0', 'Died') }), now)
    expect(first).toMatchObject({ failures: 1, lastFailure: 'web-0' })
    const same = statusOf(view([pod('web-1')], { before: first, told: lost('web-0', 'Died') }), now)
    expect(same.failures).toBe(1)
    const second = statusOf(view([pod('web-2')], { before: same, told: lost('web-1', 'CrashLoop') }), now)
    expect(second).toMatchObject({ failures: 2, lastFailure: 'web-1' })
  })

  it.each(['NodeLost', 'PodDeleted', 'PodFinished', 'Ended', 'Unready'])(
    'does not count the loss of a pod by %s',
    reason => {
      const status = statusOf(view([pod('web-1')], { before: ran, told: lost('web-0', reason) }), now)
      expect(status.failures).toBeUndefined()
    },
  )

  it('counts each new start of its app in the pod that has the slot once, also with a later loss of that pod', () => {
    const next = (before: MigratingPodStatus, pods: readonly PodFacts[], told?: BackupPodSetStatus) =>
      statusOf(view(pods, { before, ...(told && { told }) }), now)
    const first = next(ran, [pod('web-0', { restarts: 2 })])
    expect(first).toMatchObject({ failures: 2, restarts: 2 })
    const same = next(first, [pod('web-0', { restarts: 2 })])
    expect(same).toEqual(first)
    // Another pod has the slot, or that is not known.
    const moved = next(same, [pod('web-0')])
    expect(moved).toMatchObject({ failures: 2, restarts: 2 })
    const back = next(moved, [pod('web-0', { restarts: 3 })])
    expect(back).toMatchObject({ failures: 3, restarts: 3 })
    const other = next(back, [pod('web-1')], lost('web-0', 'Died'))
    expect(other).toMatchObject({ failures: 4, lastFailure: 'web-0' })
    expect(other.restarts).toBeUndefined()
    expect(next(other, [pod('web-1', { restarts: 1 })], lost('web-0', 'Died')).failures).toBe(5)
  })
})

describe('MP-04: the state', () => {
  it.each([
    ['no pod yet', view([]), 'Creating'],
    ['its pod starts', view([pod('web-0', { runs: false })]), 'Creating'],
    ['its pod runs', view([pod('web-0')]), 'Running'],
    [
      'it waits for its turn',
      view([pod('web-0')], { migrations: [migration('Pending')] }),
      'MigrationPending',
    ],
    [
      'the pod that takes over gets the memory',
      view([pod('web-0'), target('web-1')], { migrations: [migration('Preparing')] }),
      'Migrating',
    ],
    [
      'a move goes on while another one waits',
      view([pod('web-0')], { migrations: [migration('Pending', { name: 'a' }), migration('Stopping')] }),
      'Migrating',
    ],
    [
      'the source is left behind',
      view([pod('web-0', { isPrimary: false, isLeaving: true }), pod('web-1', { epoch: 2 })], {
        before: ran,
      }),
      'Running',
    ],
    ['its pod is deleted', view([pod('web-0', { isLeaving: true })], { before: ran }), 'MigrationPending'],
    ['its pod is gone', view([], { before: ran }), 'MigrationPending'],
    [
      'another pod is made for a deleted one',
      view([pod('web-0', { isLeaving: true }), target('web-1')], { before: ran }),
      'Migrating',
    ],
    ['a pod that it made for a move is still there', view([pod('web-0'), target('web-1')]), 'Running'],
    ['more pods than two', view([pod('web-0'), target('web-1'), target('web-2')]), 'Invalid'],
    ['a user has its name', view([], { set: { type: 'taken', owner: undefined } }), 'Invalid'],
    ['the API server refuses its set', view([], { refused: 'no' }), 'Invalid'],
    ['its set is being deleted', view([], { set: { type: 'ending' } }), 'Creating'],
  ] as const)('%s', (_, seen, state) => expect(statusOf(seen, now).state).toBe(state))

  it('names the pod with the slot, and the last one while there is none', () => {
    const two = view([pod('web-0'), pod('web-1', { epoch: 2, node: 'n2' })])
    expect(statusOf(two, now)).toMatchObject({ activePod: 'web-1', node: 'n2' })
    const none = statusOf(view([], { before: { ...ran, node: 'n1' } }), now)
    expect([none.activePod, none.node]).toEqual(['web-0', undefined])
  })

  it('a pass over its own status changes nothing', () => {
    const seen = view([pod('web-0')], {
      told: { slots: [{ slot: 0, pod: 'web-0', epoch: 1, ready: true, generation: 4 }] },
    })
    const first = statusOf(seen, now)
    expect(first).toMatchObject({ observedGeneration: 3, generation: 4 })
    const again = { ...seen, object: { ...seen.object, status: first } }
    expect(statusOf(again, now + 60_000)).toEqual(first)
  })
})

describe('the last move', () => {
  const lastFailover = {
    ...{ slot: 0, from: 'web-1', to: 'web-2', reason: 'PodDeleted', seconds: 2.5, stateAge: 0.4 },
    ...{ at: '2029-12-31T23:00:00Z', how: 'Created' as const },
  }
  const moved = migration('Succeeded', { endedAt: '2029-12-31T22:00:00Z', downtimeMs: 240 })

  it('is a Migration with its downtime, or a loss with the age of the memory', () => {
    const byMigration = statusOf(view([pod('web-1')], { migrations: [moved] }), now).lastMove
    expect(byMigration).toEqual({
      ...{ from: 'web-0', to: 'web-1', reason: 'Migration', seconds: 0.24, at: '2029-12-31T22:00:00Z' },
    })
    const byLoss = statusOf(
      view([pod('web-2')], { migrations: [moved], told: { lastFailover } }),
      now,
    ).lastMove
    expect(byLoss).toMatchObject({ from: 'web-1', to: 'web-2', reason: 'PodDeleted', stateAge: 0.4 })
    expect(byLoss).not.toHaveProperty('how')
  })

  it('stays when its Migration is deleted, and a failed one is none', () => {
    const { lastMove } = statusOf(view([pod('web-1')], { migrations: [moved] }), now)
    const later = view([pod('web-1')], { before: lastMove ? { lastMove } : {} })
    expect(statusOf(later, now).lastMove).toEqual(lastMove)
    const failed = view([pod('web-0')], { migrations: [{ ...moved, phase: 'Failed' }] })
    expect(statusOf(failed, now).lastMove).toBeUndefined()
  })
})

describe('the conditions', () => {
  it('repeat those of the set, with the generation of the object, and say why it is invalid', () => {
    const condition = {
      status: 'True',
      reason: 'AllInPlace',
      message: 'well',
      observedGeneration: 9,
    } as const
    const conditions = ['Ready', 'Progressing', 'Degraded', 'CheckpointReady'].map(type => ({
      ...{ type, ...condition },
      lastTransitionTime: '2029-01-01T00:00:00Z',
    }))
    const well = statusOf(view([pod('web-0')], { told: { conditions } }), now).conditions
    expect(well?.map(({ type, status, observedGeneration }) => [type, status, observedGeneration])).toEqual([
      ['Ready', 'True', 3],
      ['Degraded', 'True', 3],
      ['CheckpointReady', 'True', 3],
    ])
    const taken = statusOf(view([], { set: { type: 'taken', owner: 'MigratingPod web' } }), now).conditions
    expect(taken?.[0]).toMatchObject({ status: 'False', reason: 'NameTaken' })
    expect(taken?.[0]?.message).toContain('of MigratingPod web')
  })

  it('MP-35: says why the memory cannot be restored, while no pod serves with it', () => {
    const told = (status: 'True' | 'False') => ({
      conditions: [
        {
          ...{ type: 'Ready', status, reason: 'PodsMissing', message: '0 of 1', observedGeneration: 1 },
          lastTransitionTime: '2029-01-01T00:00:00Z',
        },
      ],
    })
    const readyOf = (status: 'True' | 'False', ...pods: PodFacts[]) =>
      statusOf(view(pods, { told: told(status) }), now).conditions?.[0]
    const failed = target('web-1', { failed: 'the application ended before it answered' })
    expect(readyOf('False', failed)).toMatchObject({
      ...{ status: 'False', reason: 'RestoreFailed' },
      message: 'web-1: the application ended before it answered',
    })
    expect(readyOf('True', failed)).toMatchObject({ status: 'True' })
    expect(readyOf('False', { ...failed, isLeaving: true })).toMatchObject({ reason: 'PodsMissing' })
    expect(readyOf('False', pod('web-0'), failed)).toMatchObject({ reason: 'PodsMissing' })
  })
})
