import { afterAll, afterEach, beforeAll, expect, it } from 'vitest'
import { type Migration, type MigrationPhase, migrations } from '../../../src/api/migration.ts'
import { isKubeError } from '../../../src/kube/errors.ts'
import { eventually } from '../../support/eventually.ts'
import { createJobsWorld, type JobsWorld } from './world.ts'

let world: JobsWorld
beforeAll(async () => {
  world = await createJobsWorld()
  await world.leader()
})
afterAll(() => world[Symbol.asyncDispose]())
afterEach(() => world.clean())

/** Makes a job, and returns the Migration that the operator creates for it. */
async function begun() {
  const { name, pods } = await world.workload(2)
  const job = await world.job(`${name}-0`, { mode: 'Live' })
  const { metadata } = await world.get(job)
  const ref = { namespace: world.namespace, name: `job-${metadata.uid}` }
  const migration = await eventually(() => world.api.get(migrations, ref))
  return { job, uid: metadata.uid, pod: pods[0], migration, ref }
}

/** Writes the status as the controller of Migrations would: no set moves a pod here. */
const becomes = (ref: { readonly name: string }, phase: MigrationPhase, more: Migration['status'] = {}) =>
  world.api.patch(
    migrations,
    { namespace: world.namespace, name: ref.name },
    { type: 'merge', body: { status: { phase, ...more } } },
    { subresource: 'status' },
  )

const isGone = (ref: { readonly namespace: string; readonly name: string }) =>
  world.api.get(migrations, ref).then(
    () => false,
    (error: unknown) => isKubeError(error, 'NotFound'),
  )

const condition = (status: 'True' | 'False', reason: string) => ({
  conditions: [
    {
      ...{ type: 'Succeeded', status, reason, message: 'as the test says', observedGeneration: 1 },
      lastTransitionTime: '2030-01-01T00:00:00Z',
    },
  ],
})

it('creates one Migration for the pod, which belongs to the job, and follows it to its end', async () => {
  const { job, uid, pod, migration, ref } = await begun()
  expect(migration.spec.source).toEqual({ name: pod?.metadata.name, uid: pod?.metadata.uid })
  expect(migration.metadata.ownerReferences).toEqual([
    expect.objectContaining({ uid, kind: 'PodMigrationJob' }),
  ])
  await becomes(ref, 'Preparing')
  await world.reaches(job, {
    phase: 'Running',
    status: 'Migrated',
    migration: { name: ref.name, uid: migration.metadata.uid },
  })
  const target = { name: 'web-new', uid: 'uid-new', node: 'node-7' }
  await becomes(ref, 'Succeeded', { target, ...condition('True', 'Moved') })
  await world.reaches(job, {
    ...{ phase: 'Succeed', reason: 'Moved', nodeName: 'node-7' },
    podRef: { namespace: world.namespace, name: 'web-new', uid: 'uid-new' },
  })
  expect(await world.stays(pod?.metadata.name ?? '')).toBe(true)
})

it('fails for the reason of its Migration', async () => {
  const { job, ref } = await begun()
  await becomes(ref, 'Failed', condition('False', 'NoMemory'))
  await world.reaches(job, { phase: 'Failed', reason: 'NoMemory' })
})

it('PJ14: an abort before the switch deletes the Migration; the pod stays', async () => {
  const { job, ref, pod } = await begun()
  await becomes(ref, 'Preparing')
  await world.patch(job, { abort: true })
  await world.reaches(job, { phase: 'Aborted' })
  expect(await isGone(ref)).toBe(true)
  expect(await world.stays(pod?.metadata.name ?? '')).toBe(true)
})

it('after the switch an abort comes too late', async () => {
  const { job, ref } = await begun()
  await becomes(ref, 'Switching')
  await world.reaches(job, { phase: 'Running', status: 'Migrated' })
  await world.patch(job, { abort: true })
  await becomes(ref, 'Succeeded', condition('True', 'Moved'))
  await world.reaches(job, { phase: 'Succeed', reason: 'Moved' })
})

it('PJ04: when the ttl is over the Migration is called off', async () => {
  const { name } = await world.workload(2)
  const job = await world.job(`${name}-0`, { mode: 'Live', ttl: '2s' })
  await world.reaches(job, { phase: 'Failed', reason: 'Timeout' })
  const { metadata } = await world.get(job)
  expect(await isGone({ namespace: world.namespace, name: `job-${metadata.uid}` })).toBe(true)
})

it('a Migration that a user deletes ends the job', async () => {
  const { job, ref, migration } = await begun()
  await world.reaches(job, { migration: { name: ref.name, uid: migration.metadata.uid } })
  await world.api.delete(migrations, ref)
  await world.reaches(job, { phase: 'Failed', reason: 'MigrationDeleted' })
})

it('a Migration that a tenant makes under the name of the job is not followed', async () => {
  const { name } = await world.workload(2)
  const job = await world.job(`${name}-0`, { mode: 'Live', paused: true })
  const { metadata } = await world.reaches(job, { reason: 'Paused' })
  const body = {
    ...{ apiVersion: 'backup.example.com/v1alpha1', kind: 'Migration' },
    metadata: { name: `job-${metadata.uid}` },
    spec: { source: { name: `${name}-1` } },
  }
  await world.api.create(migrations, body, { namespace: world.namespace })
  await world.patch(job, { paused: false })
  await world.reaches(job, { phase: 'Failed', reason: 'MigrationNameTaken' })
})
