/** Whether the job that preempts still waits for a pod that gives way. */
import { describe, expect, it } from 'vitest'
import { parseJob } from '../../api/parse-pod-migration-job.ts'
import { type PodMigrationJobStatus, podMigrationJobs } from '../../api/pod-migration-job.ts'
import type { Condition } from '../../kube/conditions.ts'
import { argsWith } from '../testing/worlds.ts'
import { relationsOf } from './preemptions.ts'

const known = (metadata: object, spec: object, status: PodMigrationJobStatus) => {
  const job = { metadata: { name: '', uid: '', resourceVersion: '1', ...metadata }, spec, status }
  const podRef = { namespace: 'shop', name: 'a' }
  const full = { ...job, spec: { podRef, ...spec } }
  return { known: { resource: podMigrationJobs, job: full }, parsed: parseJob(full, argsWith()) }
}
const preemption = (status: 'True' | 'False'): Condition => ({
  ...{ type: 'Preemption', reason: 'Preempting', message: '', observedGeneration: 1 },
  ...{ lastTransitionTime: '', status },
})
const waiting: PodMigrationJobStatus = {
  ...{ phase: 'Running', source: { uid: 'source' }, preemptionNodeName: 'n' },
  preemptedPodsRef: [{ apiVersion: 'v1', kind: 'Pod', namespace: 'shop', name: 'victim', uid: 'v' }],
  conditions: [preemption('False')],
}
const owner = { apiVersion: 'backup.example.com/v1alpha1', kind: 'PodMigrationJob', name: 'parent' }
const child = (over: object = {}) =>
  known(
    {
      ...{ name: 'preempt-p-v', uid: 'c', ownerReferences: [{ ...owner, uid: 'p', controller: true }] },
      ...over,
    },
    { podRef: { namespace: 'shop', name: 'victim', uid: 'v' } },
    {},
  )
const metadata = { name: 'parent', uid: 'p', resourceVersion: '1' }

function preemptorWith(parents: readonly ReturnType<typeof known>[], mine = child()) {
  return relationsOf([...parents, mine], new Map())(mine.known.job.metadata).preemptor
}

describe('PJ26: a job for a pod that gives way', () => {
  it('continues while the other job waits for its pod', () => {
    const still = { isOver: false, isPaused: false, source: 'source' }
    expect(preemptorWith([known(metadata, {}, waiting)])).toEqual(still)
    expect(preemptorWith([known(metadata, { paused: true }, waiting)])).toEqual({ ...still, isPaused: true })
  })

  it.each([
    ['has ended', metadata, {}, { phase: 'Failed' }],
    ['has succeeded', metadata, {}, { phase: 'Succeed' }],
    ['is judged again', metadata, {}, { phase: 'Pending' }],
    ['is aborted', metadata, { abort: true }, {}],
    ['names other pods now', metadata, {}, { preemptedPodsRef: [] }],
    ['has its room', metadata, {}, { conditions: [preemption('True')] }],
    ['is deleted, and another one has its name', { ...metadata, uid: 'other' }, {}, {}],
  ] as const)('is over when the other job %s', (_, its, spec, status) => {
    expect(preemptorWith([known(its, spec, { ...waiting, ...status })])?.isOver).toBe(true)
    expect(preemptorWith([])?.isOver).toBe(true)
  })

  it('that a user has created is a job as any other', () => {
    const parent = known(metadata, {}, waiting)
    expect(preemptorWith([parent], child({ name: 'mine' }))).toBeUndefined()
    expect(relationsOf([parent, child({ name: 'mine' })], new Map())(metadata).preemptions).toEqual([])
    expect(relationsOf([parent, child()], new Map())(metadata).preemptions).toHaveLength(1)
  })
})
