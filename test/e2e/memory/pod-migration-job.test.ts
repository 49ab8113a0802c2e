/** PodMigrationJobs on real kubelets: a primary moves with its memory, and pods of a Deployment leave within its budgets. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { parse } from 'yaml'
import { type PodMigrationJobSpec, podMigrationJobs } from '../../../src/api/pod-migration-job.ts'
import { isReady } from '../../../src/kube/ready.ts'
import { deployments, nodes, podDisruptionBudgets, pods } from '../../../src/kube/resources.ts'
import { addressOf, counter, holderOf, slotsOf } from '../../../zoo/slots.ts'
import { eventually } from '../../support/eventually.ts'
import { manifest, project } from '../../unit/deploy/manifests.ts'
import { giveBerths, nodeAffinity, oneBerth } from '../lib/berths.ts'
import { kubectl, needsNodes } from '../lib/cluster.ts'
import { coveredCounter } from '../lib/covered-counter.ts'
import { withFlag, withoutFlag } from '../lib/operator-flag.ts'
import { counterTemplate, counterWith, createWorld, type World } from '../lib/world.ts'

const files = ['pod-migration-jobs', 'job-reservations', 'job-preemptions'].flatMap(component =>
  ['rbac', 'admission'].map(name => `${project}/deploy/${component}/${name}.yaml`),
)
const policy = ['patch', 'validatingadmissionpolicy/understudy-operator-pods', '--type=json', '-p']
/** The change that the component makes to the policy. */
const exemption = async (): Promise<unknown> => {
  const { patches } = await manifest<{ patches: readonly { readonly patch: string }[] }>(
    'deploy/job-reservations/kustomization.yaml',
  )
  return parse(patches[0]?.patch ?? '')
}
const create = ({ api, namespace }: World, name: string, spec: Partial<PodMigrationJobSpec>, pod: string) =>
  api.create(podMigrationJobs, {
    ...{ apiVersion: 'backup.example.com/v1alpha1', kind: 'PodMigrationJob' },
    metadata: { name: `${namespace}-${name}` },
    spec: { ...spec, podRef: { namespace, name: pod } },
  })
const succeeded = ({ api, namespace }: World, name: string) =>
  eventually(async () => {
    const job = await api.get(podMigrationJobs, { name: `${namespace}-${name}` })
    expect(job.status?.phase, JSON.stringify(job.status)).toBe('Succeed')
    return job
  })

describe.skipIf(needsNodes())('PodMigrationJobs', () => {
  beforeAll(async () => {
    await kubectl('apply', '-k', `${project}/crds/pod-migration-jobs`)
    for (const file of files) await kubectl('apply', '-f', file)
    await kubectl(...policy, JSON.stringify(await exemption()))
    await withFlag('--pod-migration-jobs')
  })
  afterAll(async () => {
    await withoutFlag('--pod-migration-jobs')
    await kubectl(...policy, JSON.stringify([{ op: 'remove', path: '/spec/matchConditions/1' }]))
    for (const file of files) await kubectl('delete', '-f', file)
    await kubectl('delete', '-k', `${project}/crds/pod-migration-jobs`)
  })

  it('PJ27: a job with mode Live moves a primary to another node with its memory', async () => {
    await using world = await createWorld()
    const { set, expected, primary } = await coveredCounter(world)
    await create(world, 'live', { mode: 'Live' }, primary.metadata.name)
    const { status } = await succeeded(world, 'live')
    const [after] = await slotsOf(set)
    if (after === undefined) throw new Error('the slot is gone')
    const moved = await holderOf(set, after)
    expect(status).toMatchObject({
      ...{ reason: 'Moved', nodeName: moved.spec?.nodeName },
      podRef: { name: moved.metadata.name, uid: moved.metadata.uid },
      source: { uid: primary.metadata.uid, nodeName: primary.spec?.nodeName },
    })
    expect(moved.spec?.nodeName).not.toBe(primary.spec?.nodeName)
    expect(await counter.read(addressOf(moved))).toBe(expected)
  })

  it('PJ07 PJ12: with ReservationFirst the replacement is ready on another node before the pod goes; no pod is missing meanwhile', async () => {
    await using world = await createWorld()
    const { api, namespace } = world
    const labels = { app: 'reserved' }
    const template = { ...counterTemplate, metadata: { labels } }
    const spec = { replicas: 2, selector: { matchLabels: labels }, template }
    const body = { apiVersion: 'apps/v1', kind: 'Deployment', metadata: { name: 'reserved' }, spec }
    await api.create(deployments, body, { namespace })
    const ready = async () =>
      (await api.get(deployments, { namespace, name: 'reserved' })).status?.readyReplicas ?? 0
    await eventually(async () => expect(await ready()).toBe(2))
    const [old] = (await api.list(pods, { namespace, labelSelector: 'app=reserved' })).items
    if (old === undefined) throw new Error('no pod')
    await create(world, 'reserve', { mode: 'ReservationFirst' }, old.metadata.name)
    let least = 2
    const job = await eventually(async () => {
      least = Math.min(least, await ready())
      const now = await api.get(podMigrationJobs, { name: `${namespace}-reserve` })
      expect(now.status?.phase, JSON.stringify(now.status)).toBe('Succeed')
      return now
    })
    expect(least).toBe(2)
    const { podRef, nodeName } = job.status ?? {}
    expect(nodeName).not.toBe(old.spec?.nodeName)
    await eventually(async () => {
      const { items } = await api.list(pods, { namespace, labelSelector: 'app=reserved' })
      expect(items.map(({ metadata }) => metadata.uid)).not.toContain(old.metadata.uid)
      expect(items).toHaveLength(2)
      const found = items.find(({ metadata }) => metadata.uid === podRef?.uid)
      expect(found?.metadata.ownerReferences).toEqual([
        expect.objectContaining({ kind: 'ReplicaSet', controller: true }),
      ])
    })
  })

  it('PJ26 PJ31: a pod gives way only to a replacement of its own, with the grace period of the job, and no pod that waits takes its room', async () => {
    await using world = await createWorld()
    const { api, namespace } = world
    const [full, spare, third] = (await api.list(nodes, {})).items.map(({ metadata }) => metadata.name)
    if (full === undefined || spare === undefined || third === undefined)
      throw new Error('three nodes are needed')
    const deploy = async (name: string, pod: object, container: object = {}) => {
      const labels = { app: name }
      const template = { ...counterWith({ resources: oneBerth, ...container }, pod), metadata: { labels } }
      const body = { replicas: 1, selector: { matchLabels: labels }, template }
      await api.create(
        deployments,
        { apiVersion: 'apps/v1', kind: 'Deployment', metadata: { name }, spec: body },
        { namespace },
      )
      return eventually(async () => {
        const [found] = (await api.list(pods, { namespace, labelSelector: `app=${name}` })).items
        if (found === undefined || !isReady(found)) throw new Error(`no ready pod of ${name}`)
        return found
      })
    }
    const urgency = `urgent-${namespace}`
    await kubectl('create', 'priorityclass', urgency, '--value=1000')
    try {
      await giveBerths(api, full, 1)
      // Its end takes longer than the grace period of the job.
      const lifecycle = { preStop: { sleep: { seconds: 25 } } }
      const slow = { ...nodeAffinity('NotIn', third), terminationGracePeriodSeconds: 60 }
      const victim = await deploy('batch', slow, { lifecycle })
      expect(victim.spec?.nodeName).toBe(full)
      await Promise.all([spare, third].map(name => giveBerths(api, name, 1)))
      const source = await deploy('urgent', {
        ...nodeAffinity('In', full, third),
        priorityClassName: urgency,
      })
      expect(source.spec?.nodeName).toBe(third)
      const contender = { ...counterWith({ resources: oneBerth }).spec, ...nodeAffinity('In', full) }
      await api.create(pods, { metadata: { name: 'contender' }, spec: contender }, { namespace })
      await create(
        world,
        'preempt',
        {
          ...{ mode: 'ReservationFirst', reservationOptions: { preemptionOptions: {} } },
          deleteOptions: { gracePeriodSeconds: 7 },
        },
        source.metadata.name,
      )
      let least = 1
      const graces = new Set<number | undefined>()
      const job = await eventually(async () => {
        const batch = (await api.list(pods, { namespace, labelSelector: 'app=batch' })).items
        least = Math.min(
          least,
          batch.filter(pod => pod.metadata.deletionTimestamp === undefined && isReady(pod)).length,
        )
        const going = batch.find(({ metadata }) => metadata.uid === victim.metadata.uid)?.metadata
        if (going?.deletionTimestamp !== undefined) graces.add(going.deletionGracePeriodSeconds)
        const now = await api.get(podMigrationJobs, { name: `${namespace}-preempt` })
        expect(now.status?.phase, JSON.stringify(now.status)).toBe('Succeed')
        return now
      }, 240_000)
      // At any time a pod of the other workload was ready that nothing had asked to go.
      expect(least).toBe(1)
      expect([...graces]).toContain(7)
      expect(job.status).toMatchObject({
        ...{ nodeName: full, preemptionNodeName: full },
        preemptedPodsRef: [{ name: victim.metadata.name, uid: victim.metadata.uid }],
        preemptedPodsReservation: [{ phase: 'Succeeded', nodeName: spare }],
      })
      const waits = await api.get(pods, { namespace, name: 'contender' })
      expect(waits.spec?.nodeName).toBeUndefined()
    } finally {
      await Promise.all([full, spare, third].map(name => giveBerths(api, name, null)))
      await kubectl('delete', 'priorityclass', urgency)
    }
  })

  it('PJ06 PJ17 PJ20: all pods of a Deployment leave one after another, as its disruption budget allows', async () => {
    await using world = await createWorld()
    const { api, namespace } = world
    const labels = { app: 'plain' }
    const template = { ...counterTemplate, metadata: { labels } }
    const spec = { replicas: 3, selector: { matchLabels: labels }, template }
    await api.create(
      deployments,
      { apiVersion: 'apps/v1', kind: 'Deployment', metadata: { name: 'plain' }, spec },
      { namespace },
    )
    const budget = { minAvailable: 2, selector: { matchLabels: labels } }
    await api.create(
      podDisruptionBudgets,
      { apiVersion: 'policy/v1', kind: 'PodDisruptionBudget', metadata: { name: 'plain' }, spec: budget },
      { namespace },
    )
    const ready = async () =>
      (await api.get(deployments, { namespace, name: 'plain' })).status?.readyReplicas ?? 0
    await eventually(async () => expect(await ready()).toBe(3))
    const { items } = await api.list(pods, { namespace, labelSelector: 'app=plain' })
    for (const [index, { metadata }] of items.entries())
      await create(
        world,
        `evict-${index}`,
        { mode: 'EvictDirectly', skipGates: ['LocalStorage'], skipReason: 'nothing is in it' },
        metadata.name,
      )
    let least = 3
    await eventually(async () => {
      least = Math.min(least, await ready())
      const jobs = await Promise.all(
        items.map((_, index) => api.get(podMigrationJobs, { name: `${namespace}-evict-${index}` })),
      )
      expect(jobs.map(({ status }) => status?.phase)).toEqual(items.map(() => 'Succeed'))
    }, 240_000)
    expect(least).toBeGreaterThanOrEqual(2)
    await eventually(async () => expect(await ready()).toBe(3))
    const now = await api.list(pods, { namespace, labelSelector: 'app=plain' })
    const before = new Set(items.map(({ metadata }) => metadata.uid))
    expect(
      now.items.filter(
        ({ metadata }) => before.has(metadata.uid) && metadata.deletionTimestamp === undefined,
      ),
    ).toEqual([])
  })
})
