import { describe, expect, it } from 'vitest'
import { brokenJobRule, jobManager, jobPodReady, jobRefusals } from '../api/migrating-job.ts'
import type { MigratingPodStatus } from '../api/migrating-pod.ts'
import type { Job } from '../kube/resources.ts'
import { planOf } from './decide.ts'
import type { PodFact } from './view.ts'

const now = Date.parse('2030-01-01T00:01:00.700Z')
const began = '2030-01-01T00:00:00Z'
const template = { spec: { restartPolicy: 'OnFailure', containers: [{ name: 'app', image: 'app' }] } }

const jobOf = (spec: Partial<NonNullable<Job['spec']>> = {}, status: Job['status'] = {}): Job => ({
  metadata: { name: 'sum', namespace: 'shop', uid: 'j', resourceVersion: '1' },
  spec: { managedBy: jobManager, parallelism: 1, completions: 1, template, ...spec },
  status,
})
const podOf = (status: MigratingPodStatus = {}): PodFact => ({
  type: 'ours',
  pod: {
    metadata: { name: 'sum', namespace: 'shop', uid: 'p', resourceVersion: '1' },
    spec: { template: { spec: { containers: [] } } },
    status,
  },
})
const ran: MigratingPodStatus = {
  ...{ state: 'Running', activePod: 'sum-0' },
  conditions: [
    {
      ...{ type: 'Ready', status: 'True', reason: 'AllInPlace', message: '' },
      ...{ lastTransitionTime: began, observedGeneration: 1 },
    },
  ],
}
const plan = (job: Job, pod: PodFact = podOf(ran), at = now) => planOf({ job, pod }, at)
const truths = ({ status }: ReturnType<typeof plan>) =>
  status.conditions?.filter(each => each.status === 'True').map(({ type }) => type)

describe('MP-29: the plan of a Job', () => {
  it('makes a MigratingPod, and dates its start', () => {
    expect(plan(jobOf(), { type: 'absent' })).toMatchObject({
      action: 'write',
      status: { startTime: '2030-01-01T00:01:00Z', active: 0, ready: 0 },
    })
  })

  it('counts its pod while it runs and moves, and repeats whether it serves', () => {
    const running = plan(jobOf({}, { startTime: began }))
    expect(running.status).toMatchObject({ startTime: began, active: 1, ready: 1 })
    expect(truths(running)).toEqual([jobPodReady])
    expect(plan(jobOf({}, { startTime: began }), podOf({ ...ran, state: 'Migrating' })).status.active).toBe(1)
  })

  it('writes nothing new over what it has written', () => {
    const first = plan(jobOf())
    const second = plan(jobOf({}, first.status), podOf(ran), now + 60_000)
    expect(second.status).toEqual(first.status)
  })

  const completion = { pod: 'sum-1', at: '2030-01-01T00:00:50Z' }
  it('completes it when its app has ended with success, in the steps that the API server wants', () => {
    const done = plan(
      jobOf({}, { startTime: began, active: 1 }),
      podOf({ ...ran, state: 'Completed', completion }),
    )
    expect(done).toMatchObject({
      action: 'keep',
      status: { succeeded: 1, active: 0, ready: 0, completionTime: completion.at },
    })
    expect(truths(done)).toEqual(['SuccessCriteriaMet', 'Complete'])
    const after = plan(jobOf({}, done.status), { type: 'absent' })
    expect(after).toEqual({ action: 'keep', status: done.status })
  })

  it('never dates the end before the start: clocks differ', () => {
    const late = plan(jobOf({}, { startTime: '2030-01-01T00:00:55Z' }), podOf({ ...ran, completion }))
    expect(late.status.completionTime).toBe('2030-01-01T00:00:55Z')
  })

  it('counts ends of the app, and fails it above backoffLimit: it says so first', () => {
    const before = { startTime: began, active: 1 }
    // The failures include each start from an empty state.
    const counts = { failures: 2, restarts: 1 }
    expect(plan(jobOf({ backoffLimit: 2 }, before), podOf({ ...ran, ...counts }))).toMatchObject({
      ...{ action: 'write', status: { failed: 2, active: 1 } },
    })
    const announced = plan(jobOf({ backoffLimit: 1 }, before), podOf({ ...ran, ...counts }))
    expect(announced).toMatchObject({ action: 'keep', status: { failed: 2, active: 1 } })
    expect(truths(announced)).toEqual(['FailureTarget'])
    const told = plan(jobOf({ backoffLimit: 1 }, announced.status), podOf({ ...ran, ...counts }))
    expect(told).toEqual({ action: 'delete', status: announced.status })
    // The pod that ends with success from then on does not count any more.
    const still = plan(jobOf({ backoffLimit: 1 }, announced.status), podOf({ ...ran, completion }))
    expect(still.action).toBe('delete')
    const failed = plan(jobOf({ backoffLimit: 1 }, announced.status), { type: 'ending' })
    expect(failed).toMatchObject({ action: 'keep', status: { active: 0, failed: 2 } })
    expect(truths(failed)).toEqual(['FailureTarget', 'Failed'])
    expect(failed.status.conditions?.at(-1)?.reason).toBe('BackoffLimitExceeded')
    // One of its name that is ours runs on only if another operator has made it meanwhile.
    expect(plan(jobOf({}, failed.status), podOf(ran)).action).toBe('delete')
  })

  it('never forgets a failure', () => {
    const before = { startTime: began, failed: 3 }
    expect(plan(jobOf({}, before), podOf({ ...ran, failures: 1 })).status.failed).toBe(3)
  })

  it('fails it after its deadline, and waits for that', () => {
    const spec = { activeDeadlineSeconds: 90 }
    expect(plan(jobOf(spec, { startTime: began })).requeueAfterMs).toBe(29_300)
    const late = plan(jobOf(spec, { startTime: began }), podOf(ran), now + 30_000)
    expect(late.status.conditions?.at(-1)).toMatchObject({
      type: 'FailureTarget',
      reason: 'DeadlineExceeded',
    })
  })

  it('suspends it with its memory: the deadline stops, and begins again', () => {
    const spec = { suspend: true, activeDeadlineSeconds: 90 }
    const saving = plan(jobOf(spec, { startTime: began }), podOf({ ...ran, state: 'Suspending' }))
    expect(saving).toMatchObject({ action: 'write', status: { startTime: began, active: 1 } })
    const asleep = plan(jobOf(spec, saving.status), podOf({ ...ran, state: 'Suspended' }))
    expect(asleep.status).toMatchObject({ active: 0 })
    expect([asleep.status.startTime, asleep.requeueAfterMs]).toEqual([undefined, undefined])
    expect(truths(asleep)).toContain('Suspended')
    const awake = plan(jobOf({}, asleep.status), podOf({ ...ran, state: 'Suspended' }))
    expect(awake.status.startTime).toBe('2030-01-01T00:01:00Z')
    expect(truths(awake)).not.toContain('Suspended')
  })

  it('makes no pod for a Job that is created suspended', () => {
    const asleep = plan(jobOf({ suspend: true }), { type: 'absent' })
    expect([asleep.action, truths(asleep), asleep.status.startTime]).toEqual([
      'keep',
      ['Suspended'],
      undefined,
    ])
  })

  it('waits while a MigratingPod of another owner has its name', () => {
    const { action, status } = plan(jobOf(), { type: 'taken', owner: 'Job old' })
    expect(action).toBe('keep')
    expect(status.conditions).toMatchObject([{ type: jobPodReady, status: 'False', reason: 'NameTaken' }])
    expect(plan(jobOf(), { type: 'ending' }).action).toBe('keep')
  })

  it('repeats why the API server refuses its MigratingPod', () => {
    const { status } = planOf({ job: jobOf(), pod: { type: 'absent' }, refused: 'no memory here' }, now)
    expect(status.conditions).toMatchObject([
      { type: jobPodReady, status: 'False', message: 'no memory here' },
    ])
  })

  it.each([
    ['ParallelismNotOne', { parallelism: 2 }],
    ['CompletionsNotOne', { completions: 2 }],
    ['Indexed', { completionMode: 'Indexed' }],
    ['PodFailurePolicy', { podFailurePolicy: { rules: [] } }],
    ['SuccessPolicy', { successPolicy: { rules: [] } }],
    [
      'ContainersNotOne',
      { template: { spec: { containers: [...template.spec.containers, { name: 'b' }] } } },
    ],
  ] as const)('fails one that the policy would have refused as %s', (code, spec) => {
    const job = jobOf(spec)
    expect(brokenJobRule(job)).toBe(code)
    const announced = plan(job, { type: 'absent' })
    expect(announced).toMatchObject({ action: 'keep', status: { conditions: [{ type: 'FailureTarget' }] } })
    const failed = plan({ ...job, status: announced.status }, { type: 'absent' })
    expect(failed.status.conditions).toMatchObject([
      { type: 'FailureTarget', reason: code },
      { type: 'Failed', reason: code, message: jobRefusals[code] },
    ])
    expect(failed.status.startTime).toBeDefined()
  })

  it.each([
    ['runs', { startTime: began }, podOf(ran)],
    ['is suspended, with its memory', {}, podOf({ ...ran, state: 'Suspended' })],
    ['has a pod that its status does not tell of', {}, podOf(ran)],
    ['waits for its pod to be made again', { startTime: began }, { type: 'absent' } as const],
  ])('loses no memory by a change that comes while it %s', (_, status, pod) => {
    const { action, status: next } = plan(jobOf({ parallelism: 0 }, status), pod)
    expect(action).toBe('write')
    expect(next.conditions?.map(({ type }) => type) ?? []).not.toContain('FailureTarget')
    if (pod.type !== 'ours') return
    const told = next.conditions?.find(({ type }) => type === jobPodReady)
    expect(told).toMatchObject({ status: 'True', reason: 'ParallelismNotOne' })
    expect(told?.message).toContain('continues as it is')
  })

  it('completes, whatever has been changed and however late it is', () => {
    const spec = { parallelism: 0, activeDeadlineSeconds: 1, backoffLimit: 0 }
    const done = plan(jobOf(spec, { startTime: began }), podOf({ ...ran, failures: 1, completion }))
    expect(truths(done)).toContain('Complete')
  })
})
