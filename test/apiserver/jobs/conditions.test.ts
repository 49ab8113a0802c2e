/** Each condition and each reason of the design is reached by the operator's own controller, on a real API server. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type PodMigrationJob, podMigrationJobs } from '../../../src/api/pod-migration-job.ts'
import { systemClock as clock } from '../../../src/kube/clock.ts'
import { silentLog } from '../../../src/kube/log.ts'
import { systemRandom as random } from '../../../src/kube/random.ts'
import { createReflector } from '../../../src/kube/reflector.ts'
import { nodes, type Pod, pods } from '../../../src/kube/resources.ts'
import { createStore } from '../../../src/kube/store.ts'
import { eventually } from '../../support/eventually.ts'
import { createCrowd } from './crowd.ts'
import { deploymentIn } from './deployment.ts'
import { createJobsWorld, type JobsWorld } from './world.ts'

let world: JobsWorld
/** Every reason, and every condition with its status and reason, that a job has ever had. */
const seen = new Map<string, Set<string>>()
const stop = new AbortController()
let following: Promise<unknown>

beforeAll(async () => {
  world = await createJobsWorld()
  await world.leader()
  const store = createStore<PodMigrationJob>()
  store.subscribe(change => {
    const { metadata, status } = change.object
    const all = seen.get(metadata.name) ?? new Set()
    seen.set(metadata.name, all.add(status?.reason ?? ''))
    for (const { type, status: is, reason } of status?.conditions ?? []) {
      all.add(`${type} ${is}`)
      all.add(`${type} ${is} ${reason}`)
    }
  })
  const source = { api: world.api, resource: podMigrationJobs, query: {}, store, clock, random }
  following = createReflector({ ...source, log: silentLog }).run(stop.signal)
})
afterAll(async () => {
  stop.abort()
  await following
  await world[Symbol.asyncDispose]()
})

const nameOf = (pod: Pod | undefined): string => pod?.metadata.name ?? ''
const remove = (name: string) =>
  world.api.delete(pods, { namespace: world.namespace, name }, { gracePeriodSeconds: 0 })
const first = { mode: 'ReservationFirst' }

/** Each returns the name of its job when that has ended. */
const scenarios = {
  async 'a pod gives way to the replacement'() {
    await using crowd = await createCrowd(world)
    const old = nameOf(crowd.urgent.pods[0])
    const job = await world.job(old, { ...first, reservationOptions: { preemptionOptions: {} } })
    const { metadata, status } = await world.reaches(job, { reason: 'Preempting' })
    const [victim] = status?.preemptedPodsRef ?? []
    await world.reaches(`preempt-${metadata.uid}-${victim?.uid}`, { reason: 'Evicting' })
    await remove(victim?.name ?? '')
    await world.reaches(job, { reason: 'Evicting' })
    await remove(old)
    await world.reaches(job, { phase: 'Succeed' })
    return job
  },
  async 'no node has room'() {
    await using crowd = await createCrowd(world)
    // There is no room for the pods that would give way.
    await world.api.patch(
      nodes,
      { name: crowd.spare },
      { type: 'merge', body: { spec: { unschedulable: true } } },
    )
    const reservationOptions = { preemptionOptions: {} }
    const job = await world.job(nameOf(crowd.urgent.pods[0]), { ...first, reservationOptions })
    // No time limit ends the job: on a busy machine the scheduler may need longer than any short one.
    await eventually(() =>
      expect([...(seen.get(job) ?? [])]).toContain('ReservationScheduled False Unschedulable'),
    )
    await world.patch(job, { abort: true })
    await world.reaches(job, { phase: 'Aborted' })
    return job
  },
  async 'the pod gets a node while its job runs'() {
    const { set } = await deploymentIn(world, 1)
    const { name, uid, labels = {} } = set.metadata
    const spec = { containers: [{ name: 'app', image: 'app' }], schedulingGates: [{ name: 'own/gate' }] }
    const ownerReferences = [{ apiVersion: 'apps/v1', kind: 'ReplicaSet', name, uid, controller: true }]
    const metadata = { name: `${name}-gated`, labels, ownerReferences }
    await world.api.create(pods, { metadata, spec }, { namespace: world.namespace })
    const job = await world.job(metadata.name, { ...first, paused: true })
    world.kubelet.unready.add(`reservation-${(await world.get(job)).metadata.uid}`)
    await world.patch(job, { paused: false })
    await world.reaches(job, { reason: 'WaitForBoundPodReady' })
    const ref = { namespace: world.namespace, name: metadata.name }
    await world.api.patch(pods, ref, { type: 'merge', body: { spec: { schedulingGates: null } } })
    await eventually(() => expect([...(seen.get(job) ?? [])]).toContain('PodScheduled True'))
    await world.patch(job, { abort: true })
    await world.reaches(job, { phase: 'Aborted' })
    return job
  },
  async 'the replacement does not become ready'() {
    const { pods: made } = await deploymentIn(world, 2)
    const job = await world.job(nameOf(made[0]), { ...first, ttl: '2s', paused: true })
    world.kubelet.unready.add(`reservation-${(await world.get(job)).metadata.uid}`)
    await world.patch(job, { paused: false })
    await world.reaches(job, { phase: 'Failed' })
    return job
  },
  async 'no workload can adopt a replacement'() {
    const { name } = await world.workload(2)
    const job = await world.job(`${name}-0`, first)
    await world.reaches(job, { phase: 'Failed' })
    return job
  },
  async 'the pod goes before its job begins'() {
    const { name } = await world.workload(2)
    world.kubelet.lingering.add(`${name}-0`)
    await world.api.delete(pods, { namespace: world.namespace, name: `${name}-0` }, {})
    const job = await world.job(`${name}-0`)
    await world.reaches(job, { phase: 'Failed' })
    return job
  },
  async 'the Reservation of a user is not there'() {
    const { pods: made } = await deploymentIn(world, 2)
    const reservationOptions = { reservationRef: { name: 'no-such-room' } }
    const job = await world.job(nameOf(made[0]), { ...first, reservationOptions })
    await world.reaches(job, { phase: 'Failed' })
    return job
  },
  async 'the API server refuses the eviction'() {
    const { name } = await world.workload(2)
    world.refuseEvictions()
    const job = await world.job(`${name}-0`, { ttl: '1h' })
    await world.reaches(job, { reason: 'FailedEvict' })
    world.proxy.heal()
    await world.patch(job, { abort: true })
    await world.reaches(job, { phase: 'Aborted' })
    return job
  },
} satisfies Readonly<Record<string, () => Promise<string>>>

type Scenario = keyof typeof scenarios
const run = new Map<Scenario, Promise<string>>()
/** Each runs once, for all its rows. */
const historyOf = async (scenario: Scenario): Promise<readonly string[]> => {
  const job = run.get(scenario) ?? scenarios[scenario]()
  run.set(scenario, job)
  return [...(seen.get(await job) ?? [])]
}

const room = 'a pod gives way to the replacement'

/** The seven conditions of the design. Most of them have been False before, with a reason below. */
const conditions: readonly (readonly [condition: string, scenario: Scenario])[] = [
  ['ReservationCreated', room],
  ['ReservationScheduled', room],
  ['Preemption', room],
  ['Eviction', room],
  ['PodBoundReservation', room],
  ['ReservationBound', room],
  ['PodScheduled', 'the pod gets a node while its job runs'],
]

/** The eleven reasons of the design, and where they stand: of the job, or of a condition with its status. */
const reasons: readonly (readonly [reason: string, place: string, scenario: Scenario])[] = [
  ['Timeout', '', 'the replacement does not become ready'],
  ['FailedCreateReservation', '', 'no workload can adopt a replacement'],
  ['Unschedulable', 'ReservationScheduled False ', 'no node has room'],
  ['MissingPod', '', 'the pod goes before its job begins'],
  ['MissingReservation', '', 'the Reservation of a user is not there'],
  ['Preempting', 'Preemption False ', room],
  ['PreemptComplete', 'Preemption True ', room],
  ['Evicting', 'Eviction False ', room],
  ['FailedEvict', 'Eviction False ', 'the API server refuses the eviction'],
  ['EvictComplete', 'Eviction True ', room],
  ['WaitForPodBindReservation', 'PodBoundReservation False ', room],
]

describe('PJ13: what the status of a job says', () => {
  it.each(conditions)('PJ13: condition %s becomes True: %s', async (condition, scenario) => {
    // The reflector may be a moment behind.
    await eventually(async () => expect(await historyOf(scenario)).toContain(`${condition} True`))
  })

  it.each(reasons)('PJ13: reason %s (%s): %s', async (reason, place, scenario) => {
    await eventually(async () => expect(await historyOf(scenario)).toContain(`${place}${reason}`))
  })

  it('PJ13: all seven conditions and eleven reasons of the design are in the table', () => {
    expect(new Set(conditions.map(([condition]) => condition)).size).toBe(7)
    expect(new Set(reasons.map(([reason]) => reason)).size).toBe(11)
  })
})
