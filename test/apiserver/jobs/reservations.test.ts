/** Reservations: those that the operator creates for jobs, and those that users create beforehand. */
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { type PodMigrationJob, podMigrationJobs } from '../../../src/api/pod-migration-job.ts'
import { reservations } from '../../../src/api/reservation.ts'
import { type Pod, pods } from '../../../src/kube/resources.ts'
import { eventually } from '../../support/eventually.ts'
import type { OperatorProcess } from '../lib/operator-process.ts'
import { deploymentIn } from './deployment.ts'
import { createJobsWorld, type JobsWorld } from './world.ts'

let world: JobsWorld
let operator: OperatorProcess
beforeAll(async () => {
  world = await createJobsWorld()
  operator = await world.leader()
})
afterAll(() => world[Symbol.asyncDispose]())
afterEach(async () => {
  await world.clean()
  const { items } = await world.api.list(reservations, {})
  for (const { metadata } of items) await world.api.delete(reservations, { name: metadata.name })
})

const deployment = (replicas: number, spec: object = {}) => deploymentIn(world, replicas, spec)
const pod = (name: string): Promise<Pod> =>
  eventually(() => world.api.get(pods, { namespace: world.namespace, name }))
const reservation = (name: string) => world.api.get(reservations, { name })
const nameOf = (each: Pod | undefined): string => each?.metadata.name ?? ''
const conditionsOf = ({ status }: PodMigrationJob) =>
  Object.fromEntries((status?.conditions ?? []).map(each => [each.type, `${each.status} ${each.reason}`]))

/** Makes a Reservation, as a user does before any job. */
async function room(name: string, replicaSet: string, spec: object = {}): Promise<string> {
  const controller = { kind: 'ReplicaSet', namespace: world.namespace, name: replicaSet }
  const kind = { apiVersion: 'backup.example.com/v1alpha1', kind: 'Reservation' }
  const body = { ...kind, metadata: { name }, spec: { owners: [{ controller }], ...spec } }
  return (await world.api.create(reservations, body)).metadata.name
}

const reaches = (name: string, status: object) =>
  eventually(async () => {
    const found = await reservation(name)
    expect(found.status).toMatchObject(status)
    return found
  })

/** Here the controller of ReplicaSets would delete the cheapest pod. */
const remove = (name: string) =>
  world.api.delete(pods, { namespace: world.namespace, name }, { gracePeriodSeconds: 0 })

it('PJ08 PJ10: the template and the rules of the workload both hold; the reference is written into the job, and the conditions say each step', async () => {
  const { pods: made, set } = await deployment(2, { nodeSelector: { disk: 'ssd' } })
  const old = nameOf(made[0])
  const zone = { key: 'zone', operator: 'In', values: ['b'] }
  const template = {
    spec: {
      template: {
        spec: {
          nodeSelector: { arch: 'amd64' },
          affinity: {
            nodeAffinity: {
              requiredDuringSchedulingIgnoredDuringExecution: {
                nodeSelectorTerms: [{ matchExpressions: [zone] }],
              },
            },
          },
          tolerations: [{ key: 'reserved', operator: 'Exists' }],
        },
      },
    },
  }
  const job = await world.job(old, {
    mode: 'ReservationFirst',
    paused: true,
    reservationOptions: { template },
  })
  const name = `reservation-${(await world.get(job)).metadata.uid}`
  world.kubelet.unready.add(name)
  await world.patch(job, { paused: false })
  const replacement = await pod(name)
  // Before the pod exists, the job refers to its Reservation.
  const { spec, metadata } = await world.get(job)
  const { uid } = (await reservation(name)).metadata
  expect(spec.reservationOptions).toEqual({
    template,
    reservationRef: { apiVersion: 'backup.example.com/v1alpha1', kind: 'Reservation', name, uid },
  })
  expect((await reservation(name)).spec).toMatchObject({
    owners: [{ controller: { kind: 'ReplicaSet', name: set.metadata.name, uid: set.metadata.uid } }],
  })
  expect((await reservation(name)).metadata.ownerReferences).toEqual([
    expect.objectContaining({ kind: 'PodMigrationJob', uid: metadata.uid }),
  ])
  expect(replacement.spec).toMatchObject({
    nodeSelector: { disk: 'ssd', arch: 'amd64' },
    tolerations: expect.arrayContaining([{ key: 'reserved', operator: 'Exists' }]),
    affinity: {
      nodeAffinity: {
        requiredDuringSchedulingIgnoredDuringExecution: {
          nodeSelectorTerms: [
            {
              matchExpressions: [zone],
              matchFields: [{ key: 'metadata.name', operator: 'NotIn', values: [made[0]?.spec?.nodeName] }],
            },
          ],
        },
      },
    },
  })
  const waiting = await world.reaches(job, { phase: 'Running', reason: 'WaitForBoundPodReady' })
  expect(conditionsOf(waiting)).toMatchObject({
    ...{ ReservationCreated: 'True ReservationCreated', ReservationScheduled: 'True Scheduled' },
    BoundPodReady: 'False WaitForBoundPodReady',
  })
  await reaches(name, {
    phase: 'Available',
    // Read again: it had no node yet.
    nodeName: (await pod(name)).spec?.nodeName,
    podRef: { uid: replacement.metadata.uid },
  })
  // The adoption is refused for a while.
  world.proxy.status(409, {
    ...{ count: 1_000, reason: 'Conflict' },
    match: ({ method, path }) => method === 'PATCH' && path.endsWith(`/pods/${name}`),
  })
  world.kubelet.unready.delete(name)
  world.kubelet.look()
  const coming = await world.reaches(job, { phase: 'Running', reason: 'EvictionComing' })
  const bound = 'False WaitForPodBindReservation'
  expect(conditionsOf(coming)).toMatchObject({
    ...{ Eviction: 'False EvictionComing', PodBoundReservation: bound, ReservationBound: bound },
    BoundPodReady: 'True Ready',
  })
  world.proxy.heal()
  // Any change has the operator look again.
  await world.patch(job, { ttl: '1h' })
  await world.reaches(job, { phase: 'Running', reason: 'Evicting' })
  await remove(old)
  const done = await world.reaches(job, { phase: 'Succeed', status: 'Complete', reason: 'EvictComplete' })
  expect(conditionsOf(done)).toMatchObject({
    ...{
      Eviction: 'True EvictComplete',
      PodBoundReservation: 'True Adopted',
      ReservationBound: 'True Adopted',
    },
  })
  await reaches(name, { phase: 'Succeeded', currentOwners: [{ name, uid: replacement.metadata.uid }] })
})

it('PJ10: a restart between the Reservation and the reference makes no second one', async () => {
  const { pods: made } = await deployment(2)
  const path = ({ method, path: where }: { readonly method: string; readonly path: string }) =>
    method === 'PATCH' && /podmigrationjobs\/[^/]+$/.test(where)
  world.proxy.status(500, { match: path, count: 1_000, reason: 'InternalError' })
  const job = await world.job(nameOf(made[0]), { mode: 'ReservationFirst' })
  const name = `reservation-${(await world.get(job)).metadata.uid}`
  const first = await eventually(() => reservation(name))
  operator.kill()
  await operator.exited()
  world.proxy.heal()
  operator = await world.leader()
  await eventually(async () =>
    expect((await world.get(job)).spec.reservationOptions?.reservationRef?.uid).toBe(first.metadata.uid),
  )
  await pod(name)
  const { items } = await world.api.list(reservations, {})
  expect(items.map(({ metadata }) => metadata.uid)).toEqual([first.metadata.uid])
})

describe('PJ09: a Reservation of a user', () => {
  it('PJ09: holds room before any job, on the node that it names; the job uses it, and creates none', async () => {
    const { pods: made, set } = await deployment(2)
    const name = await room('room-one', set.metadata.name, { template: { spec: { nodeName: 'fake-x' } } })
    const held = await pod(name)
    expect(held.spec?.affinity?.nodeAffinity?.requiredDuringSchedulingIgnoredDuringExecution).toEqual({
      nodeSelectorTerms: [{ matchFields: [{ key: 'metadata.name', operator: 'In', values: ['fake-x'] }] }],
    })
    await reaches(name, { phase: 'Available' })
    // One whose room is not on the node of the pod, which had none when it was read.
    const { spec: scheduled } = await pod(name)
    const old = nameOf(made.find(({ spec }) => spec?.nodeName !== scheduled?.nodeName))
    const job = await world.job(old, {
      ...{ mode: 'ReservationFirst', reservationOptions: { reservationRef: { name } } },
    })
    await world.reaches(job, { phase: 'Running', reason: 'Evicting' })
    await remove(old)
    const { status } = await world.reaches(job, { phase: 'Succeed' })
    expect(status?.podRef).toMatchObject({ name, uid: held.metadata.uid })
    const { items } = await world.api.list(reservations, {})
    expect(items.map(({ metadata }) => metadata.name)).toEqual([name])
  })

  it('one that is missing, for another workload, or expired ends the job, and the pod stays', async () => {
    const { pods: made, set } = await deployment(2)
    const other = await deployment(1)
    const old = nameOf(made[0])
    const jobWith = (name: string) =>
      world.job(old, { mode: 'ReservationFirst', reservationOptions: { reservationRef: { name } } })
    await world.reaches(await jobWith('no-room'), { phase: 'Failed', reason: 'MissingReservation' })
    const foreign = await room('room-foreign', other.set.metadata.name, {
      template: { spec: { nodeSelector: { never: 'here' } } },
    })
    await reaches(foreign, { phase: 'Available' })
    const { status } = await world.reaches(await jobWith(foreign), { phase: 'Failed' })
    expect(['InvalidReservation', 'ForbiddenMigratePod']).toContain(status?.reason)
    // The Reservation of a user stays, whatever becomes of the job.
    await reaches(foreign, { phase: 'Available' })
    const late = await room('room-late', set.metadata.name, { expires: '2020-01-01T00:00:00Z' })
    await reaches(late, { phase: 'Failed' })
    await world.reaches(await jobWith(late), { phase: 'Failed', reason: 'ReservationExpired' })
    expect(await world.stays(old)).toBe(true)
  })
})

it('PJ25: with ReservationFirst the grace period of the job reaches the pod that its ReplicaSet deletes', async () => {
  const { pods: made } = await deployment(2)
  const old = nameOf(made[0])
  world.kubelet.lingering.add(old)
  const job = await world.job(old, { mode: 'ReservationFirst', deleteOptions: { gracePeriodSeconds: 7 } })
  await eventually(async () =>
    expect(conditionsOf(await world.api.get(podMigrationJobs, { name: job }))['Eviction']).toBe(
      'False Evicting',
    ),
  )
  expect((await pod(old)).metadata.deletionTimestamp).toBeUndefined()
  // As its ReplicaSet does.
  await world.api.delete(pods, { namespace: world.namespace, name: old }, {})
  await eventually(async () =>
    expect((await pod(old)).metadata).toMatchObject({ deletionGracePeriodSeconds: 7 }),
  )
  await remove(old)
  await world.reaches(job, { phase: 'Succeed' })
  expect((await world.api.list(podMigrationJobs, {})).items).toHaveLength(1)
})
