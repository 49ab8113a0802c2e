import { afterAll, afterEach, beforeAll, expect, it } from 'vitest'
import { reservationLabel } from '../../../src/api/pod-migration-job.ts'
import { reservations } from '../../../src/api/reservation.ts'
import { isKubeError } from '../../../src/kube/errors.ts'
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
afterEach(() => world.clean())

const deployment = (replicas: number) => deploymentIn(world, replicas)
const reservationOf = async (job: string): Promise<Pod> => {
  const { metadata } = await world.get(job)
  return eventually(() =>
    world.api.get(pods, { namespace: world.namespace, name: `reservation-${metadata.uid}` }),
  )
}
const isGone = (pod: Pod) =>
  eventually(async () => {
    const gone = await world.api.get(pods, { namespace: world.namespace, name: pod.metadata.name }).then(
      () => false,
      (error: unknown) => isKubeError(error, 'NotFound'),
    )
    expect(gone).toBe(true)
  })
/** The replacement does not become ready before this is undone. */
const unready = async (pod: string) => {
  // Without a mode: the default.
  const job = await world.job(pod, { mode: undefined, paused: true })
  const { metadata } = await world.get(job)
  world.kubelet.unready.add(`reservation-${metadata.uid}`)
  await world.patch(job, { paused: false })
  return { job, reservation: await reservationOf(job) }
}

it('PJ05 PJ07 PJ12: the pod stays until its replacement is ready and the workload has it; the status names the new pod', async () => {
  const { pods: made, set } = await deployment(2)
  const old = made[0]?.metadata.name ?? ''
  const { job, reservation } = await unready(old)
  const { uid } = (await world.api.get(reservations, { name: reservation.metadata.name })).metadata
  expect(reservation.metadata.labels).toMatchObject({ [reservationLabel]: uid })
  // The ReplicaSet does not count it yet.
  expect(reservation.metadata.labels).not.toHaveProperty('pod-template-hash')
  const terms = reservation.spec?.affinity?.nodeAffinity?.requiredDuringSchedulingIgnoredDuringExecution
  expect(terms?.nodeSelectorTerms).toEqual([
    { matchFields: [{ key: 'metadata.name', operator: 'NotIn', values: [made[0]?.spec?.nodeName] }] },
  ])
  await world.reaches(job, { phase: 'Running', reason: 'WaitForBoundPodReady' })
  expect(await world.stays(old)).toBe(true)
  world.kubelet.unready.delete(reservation.metadata.name)
  world.kubelet.look()
  const adopted = await eventually(async () => {
    const now = await reservationOf(job)
    expect(now.metadata.labels).toMatchObject({ 'pod-template-hash': 'h' })
    return now
  })
  expect(adopted.metadata.ownerReferences).toEqual([
    expect.objectContaining({ uid: set.metadata.uid, controller: true }),
  ])
  const costly = await world.api.get(pods, { namespace: world.namespace, name: old })
  expect(costly.metadata.annotations).toMatchObject({
    'controller.kubernetes.io/pod-deletion-cost': '-2147483648',
  })
  // Here the controller of ReplicaSets would delete the cheapest pod.
  await world.api.delete(pods, { namespace: world.namespace, name: old }, { gracePeriodSeconds: 0 })
  await world.reaches(job, {
    ...{ phase: 'Succeed', reason: 'EvictComplete' },
    podRef: { namespace: world.namespace, name: adopted.metadata.name, uid: adopted.metadata.uid },
  })
  // A user takes the pod out of its ReplicaSet to look at it: the job does not take it away.
  const labels = { 'pod-template-hash': null }
  const body = { metadata: { labels, ownerReferences: null } }
  await world.api.patch(
    pods,
    { namespace: world.namespace, name: adopted.metadata.name },
    { type: 'merge', body },
  )
  await world.reaches(await world.job(adopted.metadata.name, { paused: true }), { reason: 'Paused' })
  expect(await world.stays(adopted.metadata.name)).toBe(true)
})

it('a restart of the operator makes no second reservation', async () => {
  const { pods: made } = await deployment(2)
  const { job, reservation } = await unready(made[0]?.metadata.name ?? '')
  operator.kill()
  await operator.exited()
  operator = await world.leader()
  await world.reaches(job, { reason: 'WaitForBoundPodReady' })
  const { items } = await world.api.list(pods, {
    namespace: world.namespace,
    labelSelector: reservationLabel,
  })
  const uid = reservation.metadata.labels?.[reservationLabel]
  expect(
    items
      .filter(({ metadata }) => metadata.labels?.[reservationLabel] === uid)
      .map(({ metadata }) => metadata.uid),
  ).toEqual([reservation.metadata.uid])
})

it('PJ14: an abort releases the reservation, and the pod stays', async () => {
  const { pods: made } = await deployment(2)
  const { job, reservation } = await unready(made[0]?.metadata.name ?? '')
  await world.patch(job, { abort: true })
  await world.reaches(job, { phase: 'Aborted' })
  await isGone(reservation)
  expect(await world.stays(made[0]?.metadata.name ?? '')).toBe(true)
})

it.each([undefined, '-5'])(
  'a pod that stays after all gets its deletion cost of before again: %s',
  async deletionCost => {
    const { pods: made } = await deployment(2)
    const ref = { namespace: world.namespace, name: made[0]?.metadata.name ?? '' }
    const annotation = 'controller.kubernetes.io/pod-deletion-cost'
    const costOf = async () => (await world.api.get(pods, ref)).metadata.annotations?.[annotation]
    const body = { metadata: { annotations: { [annotation]: deletionCost ?? null } } }
    await world.api.patch(pods, ref, { type: 'merge', body })
    const { job, reservation } = await unready(ref.name)
    world.proxy.status(409, {
      ...{ count: 1_000, reason: 'Conflict' },
      match: ({ method, path }) => method === 'PATCH' && path.endsWith(`/${reservation.metadata.name}`),
    })
    world.kubelet.unready.delete(reservation.metadata.name)
    world.kubelet.look()
    await world.reaches(job, { phase: 'Running', reason: 'EvictionComing' })
    await eventually(async () => expect(await costOf()).toBe('-2147483648'))
    await world.patch(job, { abort: true })
    await world.reaches(job, { phase: 'Aborted' })
    world.proxy.heal()
    expect(await costOf()).toBe(deletionCost)
    await isGone(reservation)
  },
)

it('PJ04 PJ11: when the ttl is over the job fails, the reservation is released, and the pod stays', async () => {
  const { pods: made } = await deployment(2)
  const { job, reservation } = await unready(made[0]?.metadata.name ?? '')
  await world.patch(job, { ttl: '1s' })
  await world.reaches(job, { phase: 'Failed', reason: 'Timeout' })
  await isGone(reservation)
  expect(await world.stays(made[0]?.metadata.name ?? '')).toBe(true)
})

it('PJ11: a pod that no Deployment owns is left alone, with what to do instead', async () => {
  const { name } = await world.workload(2)
  const job = await world.job(`${name}-0`, { mode: 'ReservationFirst' })
  const { status } = await world.reaches(job, { phase: 'Failed', reason: 'FailedCreateReservation' })
  expect(status?.message).toContain('use the mode EvictDirectly')
  expect(await world.stays(`${name}-0`)).toBe(true)
})
