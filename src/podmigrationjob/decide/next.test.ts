import { describe, expect, it } from 'vitest'
import { type ParsedArgs, parseArgs } from '../../api/migration-controller-args.ts'
import type { PodMigrationJobStatus } from '../../api/pod-migration-job.ts'
import { viewWith } from '../testing/views.ts'
import { argsWith, podWith, worldOf } from '../testing/worlds.ts'
import { decide, mostWrites } from './next.ts'
import type { JobView } from './view.ts'

const now = Date.UTC(2030, 0, 1, 12)
const at = (ms: number) => new Date(now + ms).toISOString()

const planOf = (views: readonly JobView[], config: ParsedArgs = { ok: true, args: argsWith() }) => {
  const pods = views.flatMap(({ pod }) => (pod === undefined ? [] : [pod]))
  return decide(views, { world: worldOf(pods), config, now, tokens: Number.POSITIVE_INFINITY })
}
const statusOf = (view: JobView, config?: ParsedArgs) => planOf([view], config).statuses[0]?.status

const source = { uid: 'uid-web-0', nodeName: 'n1', workload: 'StatefulSet/default/web' }
const running: PodMigrationJobStatus = {
  ...{ phase: 'Running', reason: 'Admitted', message: 'all budgets have a place for the job' },
  ...{ source, startTime: at(-1_000) },
}
const eviction = (reason: string) => ({
  ...({ type: 'Eviction', status: 'False', reason, message: 'the eviction is requested' } as const),
  ...{ lastTransitionTime: at(0), observedGeneration: 1 },
})
const announced = (reason = 'EvictionComing'): PodMigrationJobStatus => ({
  ...running,
  ...{ status: 'Eviction', reason, message: 'the eviction is requested', conditions: [eviction(reason)] },
})

describe('from Pending', () => {
  it('a job is admitted with its pod, and nothing is done before the API server has that', () => {
    const { statuses, actions, admitted } = planOf([viewWith()])
    expect(statuses[0]?.status).toMatchObject({
      phase: 'Running',
      source,
      startTime: at(0),
      status: 'Arbitrated',
    })
    expect([actions, admitted]).toEqual([[], 1])
  })

  it.each([
    [{ paused: true }, { phase: 'Pending', reason: 'Paused' }],
    [
      { abort: true, paused: true },
      { phase: 'Aborted', reason: 'Aborted', completionTime: at(0) },
    ],
    [{ ttl: 'soon' }, { phase: 'Failed', reason: 'InvalidValue' }],
  ])('%o: %o', (spec, expected) => {
    expect(statusOf(viewWith(spec))).toMatchObject(expected)
  })

  it('with a configuration that is refused, and while switched off, jobs wait and say why', () => {
    expect(statusOf(viewWith(), parseArgs({ enabled: 1 }))).toMatchObject({ reason: 'InvalidConfiguration' })
    expect(statusOf(viewWith(), parseArgs({ enabled: false }))).toMatchObject({ reason: 'Disabled' })
  })

  it('PJ23: a dry run succeeds without a start, and takes no token', () => {
    const plan = planOf([viewWith()], { ok: true, args: argsWith({ dryRun: true }) })
    expect(plan.statuses[0]?.status).toMatchObject({ phase: 'Succeed', reason: 'DryRun' })
    expect([plan.actions, plan.admitted]).toEqual([[], 0])
  })

  it('the place of a job is that of its admission: it counts although the first look knew neither node nor workload', () => {
    const early = podWith('web-0', { node: undefined, owner: { type: 'unknown', name: 'ReplicaSet x' } })
    const first = statusOf(viewWith({}, { pod: early }))
    expect(first).toMatchObject({ phase: 'Pending', reason: 'WorkloadUnknown', source: { uid: early.uid } })
    const orphan = { ...first, source: { ...source, nodeName: 'n0', workload: 'ReplicaSet/default/other' } }
    for (const status of [first, orphan])
      expect(statusOf(viewWith({}, { status: status ?? {} }))).toMatchObject({ phase: 'Running', source })
    // A pod may get its node after the admission, too.
    for (const limit of ['maxMigratingPerNode', 'maxMigratingPerWorkload']) {
      const args = argsWith({ maxMigratingPerWorkload: 9, maxUnavailablePerWorkload: 9, [limit]: 1 })
      const other = viewWith(
        { podRef: { namespace: 'default', name: 'web-1' } },
        { key: 'other', uid: 'other', pod: podWith('web-1') },
      )
      const nowhere = viewWith({}, { status: { ...running, source: { uid: source.uid } } })
      const { statuses } = planOf([nowhere, other], { ok: true, args })
      expect(statuses.find(({ view }) => view === other)?.status.phase).toBe('Pending')
      expect(statuses.find(({ view }) => view === nowhere)?.status.source).toEqual(source)
    }
  })

  it('a status that is as it should be is not written again', () => {
    const status = statusOf(viewWith({ paused: true }))
    expect(statusOf(viewWith({ paused: true }, { status: status ?? {} }))).toBeUndefined()
  })
})

describe('EvictDirectly', () => {
  it('the eviction is announced, and requested by a later pass', () => {
    const first = planOf([viewWith({}, { status: running })])
    expect(first.statuses[0]?.status).toMatchObject({ status: 'Eviction', reason: 'EvictionComing' })
    expect(first.actions).toEqual([])
    const second = planOf([viewWith({}, { status: announced() })])
    expect(second.statuses).toEqual([])
    expect(second.actions).toEqual([expect.objectContaining({ type: 'evict' })])
  })

  it('a pod that is gone was evicted if that was announced, and went by itself if not', () => {
    const gone = { pod: undefined }
    expect(statusOf(viewWith({}, { status: announced(), ...gone }))).toMatchObject({
      phase: 'Succeed',
      reason: 'EvictComplete',
    })
    expect(statusOf(viewWith({}, { status: running, ...gone }))).toMatchObject({
      phase: 'Failed',
      reason: 'MissingPod',
    })
  })

  it('PJ29: while its workload rolls out an admitted job holds still; a pod that a scale-down takes is not evicted', () => {
    const rolling = planOf([viewWith({}, { status: running, isRolling: true })])
    expect(rolling.statuses[0]?.status).toMatchObject({ phase: 'Running', reason: 'RollingOut' })
    const again = planOf([viewWith({}, { status: announced('FailedEvict'), isRolling: true })])
    expect([...rolling.actions, ...again.actions]).toEqual([])
    const leaving = podWith('web-0', { isTerminating: true })
    const taken = planOf([viewWith({}, { status: running, pod: leaving })])
    expect(taken.statuses[0]?.status).toMatchObject({ phase: 'Failed', reason: 'MissingPod' })
    expect(taken.actions).toEqual([])
  })

  it('an abort comes in time until the eviction may have been accepted', () => {
    const abort = (status: PodMigrationJobStatus) => planOf([viewWith({ abort: true }, { status })])
    expect(abort(running).statuses[0]?.status).toMatchObject({ phase: 'Aborted' })
    expect(abort(announced('FailedEvict')).statuses[0]?.status).toMatchObject({ phase: 'Aborted' })
    const announcement = abort(announced())
    expect(announcement.statuses[0]?.status).toMatchObject({ phase: 'Aborted' })
    expect(announcement.actions).toEqual([])
    // The last leader says that it was accepted.
    const said = planOf([viewWith({ abort: true }, { status: announced('Evicting'), seenForMs: 100 })])
    expect(said.statuses[0]?.status).toMatchObject({ phase: 'Running', reason: 'Aborting' })
    expect(abort(announced('Evicting')).statuses[0]?.status).toMatchObject({ phase: 'Aborted' })
    expect([...said.actions, ...abort(announced('Evicting')).actions]).toEqual([])
  })

  it('a job ends as Aborted only if its eviction was not accepted, although neither pod nor job show that yet', () => {
    const abort = (eviction: JobView['eviction']) =>
      planOf([viewWith({ abort: true }, { status: announced(), eviction })])
    const accepted = abort('accepted')
    expect(accepted.statuses[0]?.status).toMatchObject({ phase: 'Running', reason: 'Evicting' })
    const unanswered = abort('unanswered')
    expect(unanswered.statuses[0]?.status).toMatchObject({ phase: 'Running', reason: 'Aborting' })
    expect([...accepted.actions, ...unanswered.actions, unanswered.againAfterMs]).toEqual([1_000])
    // An eviction that was accepted is not requested again, and the status says that it was.
    expect(planOf([viewWith({}, { status: announced(), eviction: 'accepted' })]).actions).toEqual([])
  })

  it('its ttl counts from its admission', () => {
    const late = { ...announced('FailedEvict'), startTime: at(-60_000) }
    expect(statusOf(viewWith({ ttl: '1m' }, { status: late }))).toMatchObject({
      phase: 'Failed',
      reason: 'Timeout',
    })
    expect(statusOf(viewWith({ ttl: '61s' }, { status: late }))).toBeUndefined()
    expect(planOf([viewWith({ ttl: '61s' }, { status: late })]).againAfterMs).toBe(1_000)
  })
})

describe('Live', () => {
  const named: PodMigrationJobStatus = { ...running, migration: { name: 'job-job-uid' } }
  const present = (phase: 'Preparing' | 'Switching') => ({
    ...({ type: 'present', uid: 'm', resourceVersion: '9', phase, target: undefined } as const),
    ...{ reason: 'Because', message: 'because' },
  })

  it('the Migration is named first, and created by a later pass, under the same name each time', () => {
    const first = planOf([viewWith({ mode: 'Live' }, { status: running })])
    expect(first.statuses[0]?.status.migration).toEqual({ name: 'job-job-uid' })
    expect(first.actions).toEqual([])
    const { actions } = planOf([viewWith({ mode: 'Live' }, { status: named })])
    expect(actions).toEqual([expect.objectContaining({ type: 'createMigration', name: 'job-job-uid' })])
  })

  it('an abort waits until it is certain whether the Migration exists', () => {
    const absent = (seenForMs: number) =>
      statusOf(
        viewWith({ mode: 'Live', abort: true }, { status: named, live: { type: 'absent', seenForMs } }),
      )
    expect(absent(100)).toMatchObject({ phase: 'Running' })
    expect(absent(60_000)).toMatchObject({ phase: 'Aborted' })
  })

  it('the Migration of a job that has ended is called off, unless the slot has changed hands', () => {
    const ended: PodMigrationJobStatus = { ...named, phase: 'Aborted', completionTime: at(0) }
    const acts = (phase: 'Preparing' | 'Switching') =>
      planOf([viewWith({ mode: 'Live' }, { status: ended, live: present(phase) })]).actions
    expect(acts('Preparing')).toEqual([
      expect.objectContaining({ type: 'deleteMigration', uid: 'm', resourceVersion: '9' }),
    ])
    expect(acts('Switching')).toEqual([])
  })
})

describe('many jobs', () => {
  it('PJ20: a thousand at once: only so many are written in one pass, those that begin first, and only those begin', () => {
    const views = Array.from({ length: 1_000 }, (_, index) => {
      const pod = podWith(`web-${index}`, { node: `n${index}` })
      const podRef = { namespace: 'default', name: pod.name }
      return viewWith({ podRef }, { key: `job-${index}`, name: `job-${index}`, uid: `u${index}`, pod })
    })
    const args = argsWith({ maxMigratingPerWorkload: 150, maxUnavailablePerWorkload: 150 })
    const { statuses, admitted, againAfterMs } = planOf(views, { ok: true, args })
    expect(statuses).toHaveLength(mostWrites)
    expect(statuses.every(({ status }) => status.phase === 'Running')).toBe(true)
    expect([admitted, againAfterMs]).toEqual([mostWrites, 1_000])
  })

  it('jobs that have ended are deleted when their time is over, and never with a refused configuration', () => {
    const status: PodMigrationJobStatus = { phase: 'Succeed', completionTime: at(-3_600_000) }
    const ended = viewWith({}, { status })
    expect(planOf([ended]).deletions).toEqual([ended])
    expect(planOf([ended], parseArgs({ enabled: 1 })).deletions).toEqual([])
  })
})
