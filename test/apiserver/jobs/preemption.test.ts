/** Preemption for the replacement of a job: no pod goes before it has a replacement itself. */
import { afterAll, afterEach, beforeAll, expect, it } from 'vitest'
import { type PodMigrationJob, podMigrationJobs, roomGate } from '../../../src/api/pod-migration-job.ts'
import { reservations } from '../../../src/api/reservation.ts'
import { type Pod, pods } from '../../../src/kube/resources.ts'
import { eventually } from '../../support/eventually.ts'
import type { OperatorProcess } from '../lib/operator-process.ts'
import { createCrowd } from './crowd.ts'
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

const pod = (name: string): Promise<Pod> =>
  eventually(() => world.api.get(pods, { namespace: world.namespace, name }))
const nameOf = (each: Pod | undefined): string => each?.metadata.name ?? ''
const remove = (name: string) =>
  world.api.delete(pods, { namespace: world.namespace, name }, { gracePeriodSeconds: 0 })
const conditionsOf = ({ status }: PodMigrationJob) =>
  Object.fromEntries((status?.conditions ?? []).map(each => [each.type, `${each.status} ${each.reason}`]))
const replacementOf = async (job: string) => `reservation-${(await world.get(job)).metadata.uid}`

const preempting = { mode: 'ReservationFirst', reservationOptions: { preemptionOptions: {} } }

it('PJ26 PJ31: a pod gives way only to a replacement of its own, with the grace period of the job; its room goes to the replacement of the job', async () => {
  await using crowd = await createCrowd(world)
  const old = nameOf(crowd.urgent.pods[0])
  const job = await world.job(old, {
    ...{ mode: 'ReservationFirst', reservationOptions: { preemptionOptions: {} } },
    deleteOptions: { gracePeriodSeconds: 7 },
  })
  const announced = await world.reaches(job, { phase: 'Running', reason: 'Preempting' })
  const [victim] = announced.status?.preemptedPodsRef ?? []
  expect(announced.status).toMatchObject({ preemptionNodeName: crowd.full })
  expect(crowd.batch.pods.map(nameOf)).toContain(victim?.name)
  const uid = victim?.uid ?? ''
  const replacement = await replacementOf(job)
  await eventually(async () => {
    const { spec, status } = await pod(replacement)
    expect(spec?.schedulingGates).toEqual([{ name: roomGate }])
    expect(status?.nominatedNodeName).toBe(crowd.full)
  })
  world.kubelet.lingering.add(victim?.name ?? '')
  const child = `preempt-${announced.metadata.uid}-${uid}`
  await eventually(async () =>
    expect(conditionsOf(await world.api.get(podMigrationJobs, { name: child }))['Eviction']).toBe(
      'False Evicting',
    ),
  )
  // It has a replacement that its workload has adopted, and nothing has asked it to go.
  const stays = await pod(victim?.name ?? '')
  expect(stays.metadata).toMatchObject({ uid })
  expect(stays.metadata.deletionTimestamp).toBeUndefined()
  const { status } = await world.api.get(podMigrationJobs, { name: child })
  const room = await pod(status?.podRef?.name ?? '')
  expect(room.spec?.nodeName).not.toBe(crowd.full)
  // As its ReplicaSet does.
  await world.api.delete(pods, { namespace: world.namespace, name: victim?.name ?? '' }, {})
  await eventually(async () =>
    expect((await pod(victim?.name ?? '')).metadata).toMatchObject({ deletionGracePeriodSeconds: 7 }),
  )
  expect((await pod(replacement)).spec?.schedulingGates).toEqual([{ name: roomGate }])
  await remove(victim?.name ?? '')
  await eventually(async () => expect((await pod(replacement)).spec?.nodeName).toBe(crowd.full))
  await world.reaches(job, { reason: 'Evicting' })
  await remove(old)
  const done = await world.reaches(job, { phase: 'Succeed', nodeName: crowd.full })
  expect(conditionsOf(done)).toMatchObject({ Preemption: 'True PreemptComplete' })
  expect(done.status?.preemptedPodsReservation).toEqual([
    {
      ...{ namespace: world.namespace, name: room.metadata.name, phase: 'Succeeded' },
      nodeName: room.spec?.nodeName,
      preemptedPodRef: expect.objectContaining({ name: victim?.name, uid }),
      podsRef: [expect.objectContaining({ name: room.metadata.name, uid: room.metadata.uid })],
    },
  ])
})

it('PJ26: without preemptionOptions no pod gives way, and the scheduler sees the replacement as any pod', async () => {
  await using crowd = await createCrowd(world)
  const job = await world.job(nameOf(crowd.urgent.pods[0]), { mode: 'ReservationFirst' })
  const { spec, status } = await pod(await replacementOf(job))
  expect(spec?.schedulingGates).toBeUndefined()
  expect(status?.nominatedNodeName).toBeUndefined()
  await world.patch(job, { ttl: '5s' })
  await world.reaches(job, { phase: 'Failed', reason: 'Timeout' })
  expect((await world.get(job)).status?.preemptedPodsRef).toBeUndefined()
  for (const each of [...crowd.batch.pods, ...crowd.urgent.pods])
    expect(await world.stays(nameOf(each))).toBe(true)
})

it('PJ26: when room comes from elsewhere, or the job is deleted, the pods that have not gone stay', async () => {
  await using crowd = await createCrowd(world)
  const begun = async () => {
    const job = await world.job(nameOf(crowd.urgent.pods[0]), preempting)
    const { metadata, status } = await world.reaches(job, { phase: 'Running', reason: 'Preempting' })
    const [victim] = status?.preemptedPodsRef ?? []
    const child = `preempt-${metadata.uid}-${victim?.uid}`
    const { uid } = (await eventually(() => world.api.get(podMigrationJobs, { name: child }))).metadata
    world.kubelet.unready.add(`reservation-${uid}`)
    await world.reaches(child, { reason: 'WaitForBoundPodReady' })
    return { job, child, victim: victim?.name ?? '', uid }
  }
  const first = await begun()
  await world.api.delete(podMigrationJobs, { name: first.job })
  // Nothing collects garbage here.
  await world.reaches(first.child, { phase: 'Aborted', reason: 'PreemptionOver' })
  expect(await world.stays(first.victim)).toBe(true)
  const second = await begun()
  const other = crowd.batch.pods.map(nameOf).find(name => name !== second.victim) ?? ''
  await remove(other)
  await world.reaches(second.child, { phase: 'Aborted', reason: 'PreemptionOver' })
  expect(await world.stays(second.victim)).toBe(true)
  await eventually(async () =>
    expect((await pod(await replacementOf(second.job))).spec?.nodeName).toBe(crowd.full),
  )
  const { status } = await world.get(second.job)
  expect(status?.preemptedPodsRef).toEqual([])
})

it('PJ26: a restart makes no second job for a pod; an abort calls the others off, and they stay', async () => {
  await using crowd = await createCrowd(world)
  const job = await world.job(nameOf(crowd.urgent.pods[0]), {
    ...{ mode: 'ReservationFirst', reservationOptions: { preemptionOptions: {} } },
  })
  const { metadata, status } = await world.reaches(job, { phase: 'Running', reason: 'Preempting' })
  const [victim] = status?.preemptedPodsRef ?? []
  const child = `preempt-${metadata.uid}-${victim?.uid}`
  const { metadata: ofChild } = await eventually(() => world.api.get(podMigrationJobs, { name: child }))
  world.kubelet.unready.add(`reservation-${ofChild.uid}`)
  operator.kill()
  await operator.exited()
  operator = await world.leader()
  await world.reaches(child, { reason: 'WaitForBoundPodReady' })
  const { items } = await world.api.list(podMigrationJobs, {})
  expect(items.map(each => each.metadata.name).toSorted()).toEqual([job, child].toSorted())
  await world.patch(job, { abort: true })
  await world.reaches(job, { phase: 'Aborted' })
  await world.reaches(child, { phase: 'Aborted' })
  expect(await world.stays(victim?.name ?? '')).toBe(true)
})

it('PJ26: a replacement for which others could give way goes to a node with room, for which it is nominated before the scheduler sees it', async () => {
  await using crowd = await createCrowd(world)
  await remove(nameOf(crowd.batch.pods[0]))
  const job = await world.job(nameOf(crowd.urgent.pods[0]), preempting)
  await eventually(async () => expect((await pod(await replacementOf(job))).spec?.nodeName).toBe(crowd.full))
  await world.reaches(job, { reason: 'Evicting' })
  await remove(nameOf(crowd.urgent.pods[0]))
  const { status } = await world.reaches(job, { phase: 'Succeed' })
  expect(status?.preemptedPodsRef).toBeUndefined()
})
