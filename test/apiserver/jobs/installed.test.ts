// Long because all tests share one control plane with the component as it is installed.
/** The component as it is installed: the operator runs with its own rights, beside Koordinator's kind or without. */
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join, relative } from 'node:path'
import { afterAll, beforeAll, expect, it, vi } from 'vitest'
import { parse } from 'yaml'
import { run } from '../../../build/run.ts'
import { type ControlPlane, startControlPlane } from '../../../playground/control-plane.ts'
import { koordinatorJobs, podMigrationJobs } from '../../../src/api/pod-migration-job.ts'
import { koordinatorReservations, reservations } from '../../../src/api/reservation.ts'
import { type Api, createApi } from '../../../src/kube/api.ts'
import { loadConnection } from '../../../src/kube/connection.ts'
import { customResourceDefinitions, pods } from '../../../src/kube/resources.ts'
import { eventually } from '../../support/eventually.ts'
import { project } from '../../unit/deploy/manifests.ts'
import { type FakeKubelet, startFakeKubelet } from '../lib/fake-kubelet.ts'
import { type OperatorProcess, startOperator } from '../lib/operator-process.ts'
import { createCrowd } from './crowd.ts'
import { crds, objectsIn } from './world.ts'

let cluster: ControlPlane
let scratch = ''
let api: Api
let thief: Api
let kubelet: FakeKubelet
let operator: OperatorProcess
const system = 'understudy-system'

const kubectl = (...args: string[]) => run(cluster.kubectl, ['--kubeconfig', cluster.kubeconfigPath, ...args])
const apply = async (text: string) => {
  const file = join(scratch, 'object.yaml')
  await writeFile(file, text)
  return kubectl('apply', '-f', file)
}

beforeAll(async () => {
  scratch = await mkdtemp(join(tmpdir(), 'understudy-jobs-'))
  cluster = await startControlPlane()
  const overlay = join(scratch, 'overlay')
  await mkdir(overlay)
  const deploy = relative(overlay, join(project, 'deploy'))
  const components = ['pod-migration-jobs', 'job-reservations', 'job-preemptions', 'job-deletions'].map(
    each => `${deploy}/${each}`,
  )
  const content = `resources: [${deploy}/base]\ncomponents: [${components.join(', ')}]\n`
  await writeFile(join(overlay, 'kustomization.yaml'), content)
  await kubectl('apply', '-k', overlay)
  await vi.waitFor(() => kubectl('get', 'bps,podmigrationjobs.backup.example.com', '-A'), { interval: 100 })
  api = createApi({ connection: await loadConnection({ kubeconfig: cluster.kubeconfigPath }) })
  const kubeconfig = await cluster.kubeconfigFor(`system:serviceaccount:${system}:understudy-operator`)
  thief = createApi({ connection: await loadConnection({ kubeconfig }) })
  await kubectl('create', 'namespace', 'shop')
  kubelet = startFakeKubelet(api, 'shop')
  operator = startOperator(kubeconfig, system, '--pod-migration-jobs')
  await operator.leading()
})
afterAll(async () => {
  await operator[Symbol.asyncDispose]()
  await kubelet[Symbol.asyncDispose]()
  await Promise.all([api.close(), thief.close()])
  await cluster.stop()
  await rm(scratch, { recursive: true, force: true })
})

const makePod = (name: string) =>
  api.create(
    pods,
    { metadata: { name }, spec: { containers: [{ name: 'app', image: 'app' }] } },
    { namespace: 'shop' },
  )
const isGone = (name: string) =>
  eventually(async () => {
    const { items } = await api.list(pods, { namespace: 'shop' })
    expect(items.map(({ metadata }) => metadata.name)).not.toContain(name)
  })

const bare = { skipGates: ['BarePod'], skipReason: 'a test without controllers' }

it('PJ27: the rights of the component are enough to carry out a job of a client, and its columns say how far it is', async () => {
  await makePod('one')
  const body = {
    ...{ apiVersion: 'backup.example.com/v1alpha1', kind: 'PodMigrationJob' },
    metadata: { name: 'one' },
    spec: { mode: 'EvictDirectly', podRef: { namespace: 'shop', name: 'one' }, ...bare },
  }
  await api.create(podMigrationJobs, body)
  await eventually(async () =>
    expect((await api.get(podMigrationJobs, { name: 'one' })).status?.phase).toBe('Succeed'),
  )
  await isGone('one')
  const table = await kubectl('get', 'podmigrationjobs.backup.example.com')
  expect(table).toMatch(/NAME +PHASE +STATUS +AGE +NODE +REASON +PODNAMESPACE +POD/)
  expect(table).toMatch(/one +Succeed +Complete .* EvictComplete +shop +one/)
})

it('the sample is accepted', async () => {
  const created = await kubectl('apply', '-f', join(project, 'samples/pod-migration-jobs/jobs.yaml'))
  expect(created.trim().split('\n')).toHaveLength(2)
  await kubectl('delete', '-f', join(project, 'samples/pod-migration-jobs/jobs.yaml'))
})

it('invalid values are refused, with what to change', async () => {
  const refused = (spec: string) =>
    expect(
      apply(
        `{apiVersion: backup.example.com/v1alpha1, kind: PodMigrationJob, metadata: {name: bad}, spec: ${spec}}`,
      ),
    ).rejects
  await refused('{mode: EvictionDirectly, podRef: {namespace: shop, name: a}}').toThrow(/EvictDirectly/)
  await refused('{podRef: {name: a}}').toThrow(/namespace/)
  await refused('{podRef: {namespace: shop, name: a}, ttl: soon}').toThrow(/ttl/)
  await refused('{podRef: {namespace: shop, name: a}, ttl: 48h}').toThrow(/ttl is from 1s to 24h/)
  await refused(
    '{mode: Live, podRef: {namespace: shop, name: a}, reservationOptions: {preemptionOptions: {}}}',
  ).toThrow(/preemptionOptions and reservationRef are for the mode ReservationFirst/)
  await refused('{podRef: {namespace: shop, name: a}, skipGates: [LocalStorage]}').toThrow(/skipReason/)
})

it('the token of the operator evicts no pod without its uid, and none of the operator', async () => {
  await makePod('two')
  const evict = (namespace: string, name: string, uid?: string) =>
    thief.request('POST', `/api/v1/namespaces/${namespace}/pods/${name}/eviction`, {
      body: {
        ...{ apiVersion: 'policy/v1', kind: 'Eviction', metadata: { namespace, name } },
        deleteOptions: uid === undefined ? {} : { preconditions: { uid } },
      },
    })
  await expect(evict('shop', 'two')).rejects.toThrow(/only with its uid/)
  await expect(evict(system, 'any', 'some')).rejects.toThrow(/may not evict pods of the operator/)
  const migration = {
    ...{ apiVersion: 'backup.example.com/v1alpha1', kind: 'Migration', metadata: { name: 'stolen' } },
    spec: { source: { name: 'two' } },
  }
  const move = (more: object) =>
    thief.request('POST', '/apis/backup.example.com/v1alpha1/namespaces/shop/migrations', {
      body: { ...migration, metadata: { ...migration.metadata, ...more } },
      query: { dryRun: 'All' },
    })
  await expect(move({})).rejects.toThrow(/only objects with the label of a BackupPodSet/)
  // A job may name any pod; drains name primaries of sets.
  const owner = { apiVersion: 'backup.example.com/v1alpha1', kind: 'PodMigrationJob', name: 'a', uid: 'some' }
  await expect(move({ name: 'job-some', ownerReferences: [owner] })).resolves.toMatchObject({ status: 201 })
  const labels = { 'backup.example.com/backuppodset': 'web' }
  await expect(move({ labels })).resolves.toMatchObject({ status: 201 })
})

/** Returns how the thief would change the metadata of that pod. */
const changeOf = (name: string) => (metadata: object) =>
  thief.patch(pods, { namespace: 'shop', name }, { type: 'merge', body: { metadata } }, { dryRun: true })

it('the token of the operator makes only pods that belong to jobs, and changes no other pod but for its deletion cost', async () => {
  const uid = '00000000-0000-0000-0000-000000000000'
  const name = 'a'
  const owner = { apiVersion: 'backup.example.com/v1alpha1', kind: 'Reservation', name, uid }
  const labels = { 'backup.example.com/reservation': uid }
  const create = (namespace: string, metadata: object, spec: object = {}) =>
    thief.create(
      pods,
      { metadata, spec: { containers: [{ name: 'app', image: 'app' }], ...spec } },
      { namespace, dryRun: true },
    )
  const ours = { name, labels, ownerReferences: [owner] }
  await create('shop', ours)
  await expect(create('shop', { ...ours, ownerReferences: [] })).rejects.toThrow(/belongs to the Reservation/)
  await expect(create('shop', { ...ours, name: 'another' })).rejects.toThrow(/belongs to the Reservation/)
  await expect(create('kube-system', ours)).rejects.toThrow(/no pods in kube-/)
  const marks = { 'backup.example.com/type': 'primary' }
  await expect(create('shop', { ...ours, labels: { ...labels, ...marks } })).rejects.toThrow(/no other label/)
  await expect(create('shop', { ...ours, annotations: marks })).rejects.toThrow(/no other label/)
  await expect(create('shop', ours, { hostNetwork: true })).rejects.toThrow(/privileged/)
  await expect(create('shop', { name: 'plain' })).rejects.toThrow(/only pods of BackupPodSets/)
  await makePod('four')
  const change = changeOf('four')
  await change({ annotations: { 'controller.kubernetes.io/pod-deletion-cost': '-2147483648' } })
  const costly = { annotations: { 'controller.kubernetes.io/pod-deletion-cost': '-2147483648' } }
  await api.patch(pods, { namespace: 'shop', name: 'four' }, { type: 'merge', body: { metadata: costly } })
  await change({ annotations: { 'controller.kubernetes.io/pod-deletion-cost': null } })
  await expect(change({ annotations: { other: 'a' } })).rejects.toThrow(/only pods of BackupPodSets/)
  await expect(change({ labels: { app: 'a' } })).rejects.toThrow(/only pods of BackupPodSets/)
  await expect(change({ labels })).rejects.toThrow(/only pods of BackupPodSets/)
  // A soft eviction is less than an eviction.
  await change({ annotations: { 'scheduling.koordinator.sh/soft-eviction': '{}' } })
})

it('PJ25: with the component for deletions the token deletes pods by their uid, and none of the operator', async () => {
  await makePod('five')
  const { uid } = (await api.get(pods, { namespace: 'shop', name: 'five' })).metadata
  const deletes = (namespace: string, options: object) =>
    thief.delete(pods, { namespace, name: 'five' }, { ...options, dryRun: true })
  await expect(deletes('shop', {})).rejects.toThrow(/only pods of BackupPodSets/)
  await deletes('shop', { uid })
  await api.create(
    pods,
    { metadata: { name: 'five' }, spec: { containers: [{ name: 'app', image: 'app' }] } },
    { namespace: 'kube-system' },
  )
  const other = (await api.get(pods, { namespace: 'kube-system', name: 'five' })).metadata
  await expect(deletes('kube-system', { uid: other.uid })).rejects.toThrow(/may not create, change or delete/)
})

it('the token takes no pod of a Reservation away from its ReplicaSet, and deletes it as any other', async () => {
  const uid = '00000000-0000-0000-0000-000000000001'
  const hash = { 'pod-template-hash': 'h' }
  const owners = ['ReplicaSet', 'Reservation'].map((kind, index) => ({
    ...{ apiVersion: index === 0 ? 'apps/v1' : 'backup.example.com/v1alpha1', kind, name: 'seven' },
    uid: `00000000-0000-0000-0000-00000000000${index}`,
  }))
  await api.create(
    pods,
    {
      metadata: {
        ...{ name: 'seven', ownerReferences: owners },
        labels: { ...hash, 'backup.example.com/reservation': uid },
      },
      spec: { containers: [{ name: 'app', image: 'app' }] },
    },
    { namespace: 'shop' },
  )
  const change = changeOf('seven')
  await change({ annotations: { 'controller.kubernetes.io/pod-deletion-cost': '1' } })
  for (const taken of [{ ownerReferences: [] }, { labels: { 'pod-template-hash': 'x' } }])
    await expect(change(taken)).rejects.toThrow(/only gives such a pod to its ReplicaSet/)
  const deletes = (options: object) =>
    thief.delete(pods, { namespace: 'shop', name: 'seven' }, { ...options, dryRun: true })
  await expect(deletes({})).rejects.toThrow(/does not delete a pod that a ReplicaSet has/)
  await deletes({ uid: (await api.get(pods, { namespace: 'shop', name: 'seven' })).metadata.uid })
})

it('PJ26: of the status of a pod the token writes only the node of a Reservation, and of its spec it removes only its own gate', async () => {
  const labels = { 'backup.example.com/reservation': '00000000-0000-0000-0000-000000000000' }
  const spec = {
    containers: [{ name: 'app', image: 'app' }],
    schedulingGates: [{ name: 'backup.example.com/room' }, { name: 'other/gate' }],
  }
  const nominates = (name: string, status: object, metadata: object = {}) =>
    thief.patch(
      ...([pods, { namespace: 'shop', name }, { type: 'merge', body: { metadata, status } }] as const),
      { subresource: 'status', dryRun: true },
    )
  await api.create(pods, { metadata: { name: 'eight', labels }, spec }, { namespace: 'shop' })
  await nominates('eight', { nominatedNodeName: 'n1' })
  await expect(nominates('eight', { phase: 'Running' })).rejects.toThrow(/writes only nominatedNodeName/)
  const ready = { conditions: [{ type: 'Ready', status: 'True' }] }
  await expect(nominates('eight', ready)).rejects.toThrow(/writes only nominatedNodeName/)
  await expect(nominates('eight', { podIP: '10.0.0.1' })).rejects.toThrow(/writes only nominatedNodeName/)
  await expect(nominates('eight', {}, { labels: { app: 'a' } })).rejects.toThrow(
    /writes only nominatedNodeName/,
  )
  const plain = { metadata: { name: 'nine' }, spec }
  await api.create(pods, plain, { namespace: 'shop' })
  await expect(nominates('nine', { nominatedNodeName: 'n1' })).rejects.toThrow(
    /only for a pod of a Reservation/,
  )
  const opens = (name: string, more: object) =>
    thief.patch(...([pods, { namespace: 'shop', name }, { type: 'merge', body: { spec: more } }] as const), {
      dryRun: true,
    })
  const left = { schedulingGates: [{ name: 'other/gate' }] }
  await opens('eight', left)
  const refused = /only its own scheduling gate/
  await expect(opens('eight', { schedulingGates: null })).rejects.toThrow(refused)
  await expect(opens('eight', { ...left, nodeSelector: { zone: 'b' } })).rejects.toThrow(refused)
  await expect(opens('eight', { containers: [{ name: 'app', image: 'other' }] })).rejects.toThrow(refused)
  await expect(opens('nine', left)).rejects.toThrow(/only pods of BackupPodSets/)
})

it('PJ26: the rights of the components are enough for a pod that gives way to a replacement', async () => {
  const { makePod: make } = objectsIn(api, 'shop')
  await using crowd = await createCrowd({ api, namespace: 'shop', makePod: make })
  const [source] = crowd.urgent.pods
  const body = {
    ...{ apiVersion: 'backup.example.com/v1alpha1', kind: 'PodMigrationJob' },
    metadata: { name: 'preempts' },
    spec: {
      ...{ mode: 'ReservationFirst', reservationOptions: { preemptionOptions: {} } },
      podRef: { namespace: 'shop', name: source?.metadata.name ?? '' },
    },
  }
  const { uid } = (await api.create(podMigrationJobs, body)).metadata
  const statusOf = async (name: string) => (await api.get(podMigrationJobs, { name })).status
  const victim = await eventually(async () => {
    const [first] = (await statusOf('preempts'))?.preemptedPodsRef ?? []
    if (first === undefined) throw new Error('no pod gives way yet')
    return first
  })
  await eventually(async () =>
    expect((await statusOf(`preempt-${uid}-${victim.uid}`))?.reason).toBe('Evicting'),
  )
  await api.delete(pods, { namespace: 'shop', name: victim.name }, { gracePeriodSeconds: 0 })
  await eventually(async () =>
    expect(await statusOf('preempts')).toMatchObject({ reason: 'Evicting', nodeName: crowd.full }),
  )
})

it('PJ26: the token creates only jobs that keep all rules, for pods that give way to another job', async () => {
  const uid = '00000000-0000-0000-0000-00000000000a'
  const apiVersion = 'backup.example.com/v1alpha1'
  const owner = { apiVersion, kind: 'PodMigrationJob', name: 'a', uid, controller: true }
  const podRef = { namespace: 'shop', name: 'ten', uid: 'p' }
  const create = (spec: object, metadata: object = {}) =>
    thief.create(
      podMigrationJobs,
      {
        ...{ apiVersion, kind: 'PodMigrationJob' },
        metadata: { name: `preempt-${uid}-p`, ownerReferences: [owner], ...metadata },
        spec: { mode: 'ReservationFirst', podRef, ...spec },
      },
      { dryRun: true },
    )
  await create({ deleteOptions: { gracePeriodSeconds: 7 } })
  const foreign = /only jobs for pods that give way/
  await expect(create({}, { ownerReferences: [] })).rejects.toThrow(foreign)
  await expect(create({}, { name: 'mine' })).rejects.toThrow(foreign)
  await expect(create({ podRef: { ...podRef, uid: 'q' } })).rejects.toThrow(foreign)
  const gentle = /neither reservationOptions nor skipGates/
  await expect(create({ mode: 'EvictDirectly' })).rejects.toThrow(gentle)
  await expect(create({ reservationOptions: { preemptionOptions: {} } })).rejects.toThrow(gentle)
  await expect(create({ skipGates: ['BarePod'], skipReason: 'a' })).rejects.toThrow(gentle)
  await expect(create({ podRef: { ...podRef, namespace: 'kube-system' } })).rejects.toThrow(/kube-\*/)
})

it('PJ10: of a job the token writes only the reference to its own Reservation, and it creates no other Reservation', async () => {
  await makePod('six')
  const body = {
    ...{ apiVersion: 'backup.example.com/v1alpha1', kind: 'PodMigrationJob' },
    metadata: { name: 'six' },
    spec: {
      paused: true,
      podRef: { namespace: 'shop', name: 'six' },
      reservationOptions: { preemptionOptions: {} },
    },
  }
  const { uid } = (await api.create(podMigrationJobs, body)).metadata
  const change = (spec: object, metadata: object = {}) =>
    thief.patch(
      podMigrationJobs,
      { name: 'six' },
      { type: 'merge', body: { metadata, spec } },
      { dryRun: true },
    )
  const reservationRef = { name: `reservation-${uid}` }
  await change({ reservationOptions: { reservationRef } })
  const refused = /only the reference to the Reservation/
  await expect(change({ reservationOptions: { reservationRef: { name: 'other' } } })).rejects.toThrow(refused)
  await expect(change({ abort: true, reservationOptions: { reservationRef } })).rejects.toThrow(refused)
  await expect(change({ paused: null, reservationOptions: { reservationRef } })).rejects.toThrow(refused)
  const without = { reservationOptions: { reservationRef, preemptionOptions: null } }
  await expect(change(without)).rejects.toThrow(refused)
  const notes = { annotations: { 'backup.example.com/migration-priority': '9' } }
  await expect(change({ reservationOptions: { reservationRef } }, notes)).rejects.toThrow(refused)
  const owner = { apiVersion: 'backup.example.com/v1alpha1', kind: 'PodMigrationJob', name: 'six', uid }
  const controller = { kind: 'ReplicaSet', namespace: 'shop', name: 'web' }
  const reserve = (metadata: object) =>
    thief.create(
      reservations,
      { apiVersion: owner.apiVersion, kind: 'Reservation', metadata, spec: { owners: [{ controller }] } },
      { dryRun: true },
    )
  await reserve({ name: `reservation-${uid}`, ownerReferences: [owner] })
  await expect(reserve({ name: 'mine', ownerReferences: [owner] })).rejects.toThrow(
    /only the Reservations of jobs/,
  )
  await expect(reserve({ name: `reservation-${uid}` })).rejects.toThrow(/only the Reservations of jobs/)
})

it('PJ01: the kinds have all fields, refuse what they do not have, and print their columns', async () => {
  const full = `
apiVersion: backup.example.com/v1alpha1
kind: PodMigrationJob
metadata: {name: full}
spec:
  paused: true
  ttl: 5m0s
  mode: ReservationFirst
  podRef: {apiVersion: v1, kind: Pod, namespace: shop, name: web-3, uid: a}
  reservationOptions:
    reservationRef: {apiVersion: backup.example.com/v1alpha1, kind: Reservation, name: room, uid: b}
    template: {spec: {template: {spec: {nodeSelector: {zone: b}, tolerations: [{key: a, operator: Exists}]}}}}
    preemptionOptions: {}
  deleteOptions: {gracePeriodSeconds: 30, preconditions: {uid: a, resourceVersion: "7"}}
`
  await apply(full)
  const { spec } = await api.get(podMigrationJobs, { name: 'full' })
  expect(spec).toEqual(parse(full).spec)
  // The status is a subresource: it is not written with the spec.
  const status = { phase: 'Succeed' }
  await api.patch(podMigrationJobs, { name: 'full' }, { type: 'merge', body: { status } })
  expect((await api.get(podMigrationJobs, { name: 'full' })).status?.phase).not.toBe('Succeed')
  await expect(
    api.patch(
      podMigrationJobs,
      { name: 'full' },
      { type: 'merge', body: { status: { phase: 'Success' } } },
      { subresource: 'status' },
    ),
  ).rejects.toThrow(/status.phase/)
  const ref = { reservationOptions: { reservationRef: { name: 'other' } } }
  await expect(
    api.patch(podMigrationJobs, { name: 'full' }, { type: 'merge', body: { spec: ref } }),
  ).rejects.toThrow(/reservationRef cannot be changed/)
  const wide = await kubectl('get', 'podmigrationjobs.backup.example.com', 'full', '-o', 'wide')
  expect(wide).toMatch(/NEWPOD +RESERVATION +TTL +MODE/)
  expect(wide).toMatch(/room +5m0s +ReservationFirst/)
  const room = (spec: string) =>
    apply(
      `{apiVersion: backup.example.com/v1alpha1, kind: Reservation, metadata: {name: room}, spec: ${spec}}`,
    )
  const owner = 'controller: {namespace: shop, name: web}'
  await expect(room('{owners: []}')).rejects.toThrow(/name one owner/)
  await expect(room(`{owners: [{${owner}}], allocateOnce: false}`)).rejects.toThrow(/leave allocateOnce out/)
  await expect(room(`{owners: [{${owner}}], template: {spec: {containers: [{name: a}]}}}`)).rejects.toThrow(
    /containers/,
  )
  await room(`{owners: [{${owner}}], ttl: 1h}`)
  expect(await kubectl('get', 'reservations.backup.example.com')).toMatch(
    /NAME +PHASE +AGE +NODE +TTL +EXPIRES/,
  )
  // No such ReplicaSet is there.
  await eventually(async () =>
    expect((await api.get(reservations, { name: 'room' })).status).toMatchObject({
      ...{ phase: 'Failed' },
      conditions: expect.arrayContaining([
        expect.objectContaining({ type: 'Ready', status: 'False', reason: 'InvalidReservation' }),
      ]),
    }),
  )
})

/** The example of Koordinator's user manual, as it is printed there but for namespace and name of the pod. */
const printed = `
apiVersion: scheduling.koordinator.sh/v1alpha1
kind: PodMigrationJob
metadata:
  name: migrationjob-demo
spec:
  paused: false
  ttl: 5m
  mode: ReservationFirst
  podRef:
    namespace: shop
    name: pod-demo
status:
  phase: Pending
`
const names = [koordinatorJobs, koordinatorReservations].map(({ plural, group }) => `${plural}.${group}`)

it("Koordinator's kind: it is not installed over, and its jobs are Koordinator's", async () => {
  const schema = { type: 'object', 'x-kubernetes-preserve-unknown-fields': true }
  for (const { group, plural, kind } of [koordinatorJobs, koordinatorReservations])
    await api.create(customResourceDefinitions, {
      metadata: { name: `${plural}.${group}` },
      spec: {
        ...{
          group,
          scope: 'Cluster',
          names: { plural, kind, singular: kind.toLowerCase(), listKind: `${kind}List` },
        },
        versions: [
          {
            ...{ name: 'v1alpha1', served: true, storage: true, subresources: { status: {} } },
            schema: { openAPIV3Schema: schema },
          },
        ],
      },
    })
  await expect(kubectl('create', '-k', crds('koordinator'))).rejects.toThrow(/AlreadyExists/)
  await eventually(() =>
    expect(kubectl('apply', '--server-side', '--force-conflicts', '-k', crds('koordinator'))).rejects.toThrow(
      /Koordinator is installed here/,
    ),
  )
  await makePod('pod-demo')
  await eventually(() => apply(printed))
  // A job of our own kind is carried out meanwhile, so the operator has looked.
  await makePod('three')
  const body = {
    ...{ apiVersion: 'backup.example.com/v1alpha1', kind: 'PodMigrationJob' },
    metadata: { name: 'three' },
    spec: { mode: 'EvictDirectly', podRef: { namespace: 'shop', name: 'three' }, ...bare },
  }
  await api.create(podMigrationJobs, body)
  await isGone('three')
  expect((await api.get(koordinatorJobs, { name: 'migrationjob-demo' })).status?.phase).not.toBe('Succeed')
  expect(
    (await api.get(pods, { namespace: 'shop', name: 'pod-demo' })).metadata.deletionTimestamp,
  ).toBeUndefined()
  await kubectl('delete', 'crd', ...names)
})

it('without Koordinator its printed example applies unchanged, and is carried out', async () => {
  await eventually(() => kubectl('create', '-k', crds('koordinator')))
  await eventually(() => apply(printed))
  // A bare pod needs a gate, which Koordinator's example does not have: the job is judged, and says so.
  await eventually(async () =>
    expect((await api.get(koordinatorJobs, { name: 'migrationjob-demo' })).status).toMatchObject({
      ...{ phase: 'Failed', reason: 'ForbiddenMigratePod' },
      message: expect.stringContaining('skip the gate BarePod'),
    }),
  )
})
