// Long because all tests share one control plane with the component as it is installed.
/** Jobs whose pods move, as the component installs them: the operator has its own rights; kubelet and agents are not real. */
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join, relative } from 'node:path'
import type { V1JobSpec } from '@kubernetes/client-node'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { run } from '../../../build/run.ts'
import { type ControlPlane, startControlPlane } from '../../../playground/control-plane.ts'
import { labels } from '../../../src/api/labels.ts'
import { memoryAllowed } from '../../../src/api/memory-permission.ts'
import { jobIntervalAnnotation, jobManager, jobRefusals } from '../../../src/api/migrating-job.ts'
import { migratingPods } from '../../../src/api/migrating-pod.ts'
import { migrations } from '../../../src/api/migration.ts'
import { type Api, createApi } from '../../../src/kube/api.ts'
import { loadConnection } from '../../../src/kube/connection.ts'
import { isKubeError } from '../../../src/kube/errors.ts'
import type { Wire } from '../../../src/kube/object.ts'
import { jobs, leases, namespaces, nodes, podDisruptionBudgets, pods } from '../../../src/kube/resources.ts'
import { eventually } from '../../support/eventually.ts'
import { project } from '../../unit/deploy/manifests.ts'
import { type FakeKubelet, startFakeKubelet } from '../lib/fake-kubelet.ts'
import { type OperatorProcess, startOperator } from '../lib/operator-process.ts'
import { type FakeAgents, startFakeAgents } from '../memory/fake-agents.ts'

let cluster: ControlPlane
let scratch = ''
let api: Api
let thief: Api
let kubelet: FakeKubelet
let agents: FakeAgents
let operator: OperatorProcess
const [system, namespace] = ['understudy-system', 'shop']
const machines = ['m-a', 'm-b', 'm-c']

const kubectl = (...args: string[]) => run(cluster.kubectl, ['--kubeconfig', cluster.kubeconfigPath, ...args])

beforeAll(async () => {
  scratch = await mkdtemp(join(tmpdir(), 'understudy-migrating-jobs-'))
  cluster = await startControlPlane()
  const overlay = join(scratch, 'overlay')
  await mkdir(overlay)
  const deploy = relative(overlay, join(project, 'deploy'))
  const content = `resources: [${deploy}/base]\ncomponents: [${deploy}/migrating-jobs]\n`
  await writeFile(join(overlay, 'kustomization.yaml'), content)
  await kubectl('apply', '-k', overlay)
  await vi.waitFor(() => kubectl('get', 'bps,mpod,migrations', '-A'), { interval: 100 })
  api = createApi({ connection: await loadConnection({ kubeconfig: cluster.kubeconfigPath }) })
  const kubeconfig = await cluster.kubeconfigFor(`system:serviceaccount:${system}:understudy-operator`)
  thief = createApi({ connection: await loadConnection({ kubeconfig }) })
  await api.create(namespaces, { metadata: { name: namespace, labels: memoryAllowed } })
  for (const name of machines) await api.create(nodes, { metadata: { name } })
  const place = ({ metadata: { name } }: { readonly metadata: { readonly name: string } }) =>
    machines[Number(name.slice(-1)) % machines.length] ?? ''
  kubelet = startFakeKubelet(api, namespace, { place })
  agents = await startFakeAgents(api, namespace, machines)
  operator = startOperator(kubeconfig, system, '--migrating-jobs')
  await operator.leading()
})
afterAll(async () => {
  await operator[Symbol.asyncDispose]()
  await agents[Symbol.asyncDispose]()
  await kubelet[Symbol.asyncDispose]()
  await Promise.all([api.close(), thief.close()])
  await cluster.stop()
  await rm(scratch, { recursive: true, force: true })
})

const kind = { apiVersion: 'backup.example.com/v1alpha1', kind: 'MigratingPod' }
const container = { name: 'app', image: 'app' }
const bodyOf = (name: string, spec: Partial<Wire<V1JobSpec>> = {}) => ({
  ...{ apiVersion: 'batch/v1', kind: 'Job' },
  metadata: { name, annotations: { [jobIntervalAnnotation]: '2s' } },
  spec: {
    managedBy: jobManager,
    template: { spec: { restartPolicy: 'Never', containers: [container] } },
    ...spec,
  },
})

async function create(name: string, spec: Partial<Wire<V1JobSpec>> = {}) {
  await api.create(jobs, bodyOf(name, spec), { namespace })
  return { namespace, name }
}
type Ref = Awaited<ReturnType<typeof create>>

const statusOf = async (ref: Ref) => (await api.get(jobs, ref)).status
const trueConditions = async (ref: Ref) =>
  (await statusOf(ref))?.conditions
    ?.filter(({ status }) => status === 'True')
    .map(({ type }) => type)
    .sort()
const podsOf = async ({ name }: Ref) =>
  (await api.list(pods, { namespace, labelSelector: `${labels.set}=${name}` })).items.filter(
    ({ metadata }) => metadata.deletionTimestamp === undefined,
  )
const isGone = (read: Promise<unknown>) =>
  read.then(
    () => false,
    (error: unknown) => isKubeError(error, 'NotFound'),
  )

/** Runs, and another node has its memory. */
const saved = (ref: Ref, activePod: string) =>
  eventually(async () => {
    const { status } = await api.get(migratingPods, ref)
    expect(status).toMatchObject({ state: 'Running', activePod })
    const known = status?.conditions?.filter(each => each.status === 'True').map(({ type }) => type)
    expect(known).toEqual(expect.arrayContaining(['Ready', 'CheckpointReady']))
  })

/** Reports the end of a container as the kubelet does. */
const ends = (name: string, exitCode: number) =>
  api.patch(
    pods,
    { namespace, name },
    {
      type: 'strategic',
      body: {
        status: {
          phase: exitCode === 0 ? 'Succeeded' : 'Failed',
          containerStatuses: [
            {
              ...{ name: 'app', image: '', imageID: '', ready: false, restartCount: 0 },
              state: { terminated: { exitCode, finishedAt: `${new Date().toISOString().slice(0, 19)}Z` } },
            },
          ],
        },
      },
    },
    { subresource: 'status' },
  )

describe('a Job that this operator manages', () => {
  it('MP-29: survives the drain of its node with its memory, and is complete when its app has ended', async () => {
    const ref = await create('count')
    await saved(ref, 'count-0')
    const job = await api.get(jobs, ref)
    expect(job.status).toMatchObject({ active: 1, startTime: expect.anything() })
    const { metadata, spec } = await api.get(migratingPods, ref)
    expect(metadata.ownerReferences).toMatchObject([{ kind: 'Job', uid: job.metadata.uid, controller: true }])
    expect(spec).toMatchObject({
      checkpoint: { interval: '2s' },
      template: { spec: { restartPolicy: 'OnFailure', containers: [container] } },
    })

    const [first] = await podsOf(ref)
    const node = first?.spec?.nodeName ?? ''
    await kubectl('cordon', node)
    await saved(ref, 'count-1')
    await kubectl('uncordon', node)
    const [second] = await eventually(async () => {
      const all = await podsOf(ref)
      expect(all.map(each => each.metadata.name)).toEqual(['count-1'])
      return all
    })
    expect(second?.spec?.nodeName).not.toBe(node)
    // `kubectl logs job/count` finds the pod by these.
    expect(second?.metadata.labels).toMatchObject(job.spec?.selector?.matchLabels ?? { none: '' })
    expect(agents.stages.filter(stage => stage.startsWith('count-1 '))).toHaveLength(1)
    expect(await statusOf(ref)).toMatchObject({ active: 1, startTime: job.status?.startTime })

    await ends('count-1', 0)
    await eventually(async () =>
      expect(await trueConditions(ref)).toEqual(expect.arrayContaining(['Complete', 'SuccessCriteriaMet'])),
    )
    const status = await statusOf(ref)
    expect(status).toMatchObject({ succeeded: 1, completionTime: expect.anything() })
    expect([status?.active ?? 0, status?.failed ?? 0]).toEqual([0, 0])
    // Nothing continues with its memory, and nothing keeps it. The pod stays for its logs.
    await eventually(async () => {
      const { items } = await api.list(leases, { namespace, labelSelector: `${labels.set}=count` })
      expect(items).toEqual([])
      expect(await isGone(api.get(podDisruptionBudgets, { namespace, name: 'count-primaries' }))).toBe(true)
    })
    expect((await podsOf(ref)).map(each => [each.metadata.name, each.status?.phase])).toEqual([
      ['count-1', 'Succeeded'],
    ])
    expect((await api.get(migratingPods, ref)).status).toMatchObject({
      state: 'Completed',
      completion: { pod: 'count-1' },
    })
    // Even if its pod is deleted by then.
    await api.delete(pods, { namespace, name: 'count-1' })
    await eventually(async () => expect(await podsOf(ref)).toEqual([]))
    await api.patch(migratingPods, ref, {
      type: 'merge',
      body: { metadata: { annotations: { look: 'again' } } },
    })
    await saved(await create('later'), 'later-0')
    expect(await podsOf(ref)).toEqual([])
  })

  it('MP-29: that ends while another pod gets its memory completes, and that pod goes', async () => {
    const ref = await create('race')
    await saved(ref, 'race-0')
    const body = {
      ...{ apiVersion: 'backup.example.com/v1alpha1', kind: 'Migration' },
      metadata: { name: 'race' },
      spec: { source: { name: 'race-0' } },
    }
    // No node could restore the memory, so the Migration stays in its phase Preparing.
    for (const name of machines) agents.useless.add(name)
    await agents.report()
    await api.create(migrations, body, { namespace })
    await eventually(async () => expect(await podsOf(ref)).toHaveLength(2))
    await ends('race-0', 0)
    await eventually(async () => expect(await trueConditions(ref)).toContain('Complete'))
    await eventually(async () =>
      expect((await podsOf(ref)).map(({ metadata }) => metadata.name)).toEqual(['race-0']),
    )
    expect(agents.stages.filter(stage => stage.startsWith('race-1 '))).toEqual([])
    agents.useless.clear()
    await agents.report()
  })

  it('MP-29: that fails is continued, until it has failed more often than backoffLimit allows', async () => {
    const ref = await create('broken', { backoffLimit: 1 })
    await saved(ref, 'broken-0')
    await agents.declareDead('broken-0')
    await saved(ref, 'broken-1')
    await eventually(async () => expect(await statusOf(ref)).toMatchObject({ failed: 1, active: 1 }))
    await agents.declareDead('broken-1')
    await eventually(async () =>
      expect(await trueConditions(ref)).toEqual(expect.arrayContaining(['Failed', 'FailureTarget'])),
    )
    const status = await statusOf(ref)
    expect(status?.conditions?.find(({ type }) => type === 'Failed')?.reason).toBe('BackoffLimitExceeded')
    expect([status?.failed, status?.active ?? 0]).toEqual([2, 0])
    expect(await isGone(api.get(migratingPods, ref))).toBe(true)
  })

  it('MP-29: has no pod while it is suspended, and fails after its deadline', async () => {
    const ref = await create('late', { suspend: true, activeDeadlineSeconds: 1 })
    await eventually(async () => expect(await trueConditions(ref)).toContain('Suspended'))
    expect(await isGone(api.get(migratingPods, ref))).toBe(true)
    await api.patch(jobs, ref, { type: 'merge', body: { spec: { suspend: false } } })
    await eventually(async () => expect(await trueConditions(ref)).toContain('Failed'))
    const { conditions } = (await statusOf(ref)) ?? {}
    expect(conditions?.find(({ type }) => type === 'Failed')?.reason).toBe('DeadlineExceeded')
    expect(conditions?.find(({ type }) => type === 'Suspended')?.status).toBe('False')
  })

  it('MP-29: says why it has no pod while its name is taken', async () => {
    const template = { spec: { containers: [container] } }
    await api.create(
      migratingPods,
      { ...kind, metadata: { name: 'mine' }, spec: { template } },
      { namespace },
    )
    const ref = await create('mine')
    await eventually(async () => {
      const told = (await statusOf(ref))?.conditions?.find(({ reason }) => reason === 'NameTaken')
      expect(told?.message).toMatch(/there is a MigratingPod of this name of a user/)
    })
    await api.delete(migratingPods, ref)
    await eventually(async () =>
      expect((await api.get(migratingPods, ref)).metadata.ownerReferences?.[0]?.kind).toBe('Job'),
    )
  })
})

describe('the policies', () => {
  it.each([
    ['NameTooLong', 'n'.repeat(51), {}],
    ['ParallelismNotOne', 'bad', { parallelism: 2 }],
    ['CompletionsNotOne', 'bad', { completions: 3 }],
    ['Indexed', 'bad', { completionMode: 'Indexed', completions: 1 }],
    [
      'PodFailurePolicy',
      'bad',
      {
        podFailurePolicy: { rules: [{ action: 'Ignore', onPodConditions: [{ type: 'DisruptionTarget' }] }] },
      },
    ],
    [
      'SuccessPolicy',
      'bad',
      { completionMode: 'Indexed', completions: 1, successPolicy: { rules: [{ succeededCount: 1 }] } },
    ],
    [
      'ContainersNotOne',
      'bad',
      {
        template: { spec: { restartPolicy: 'Never', containers: [container, { ...container, name: 'b' }] } },
      },
    ],
  ] as const)('MP-29: refuse a Job with %s, and say what to change', async (code, name, spec) => {
    const words = jobRefusals[code].slice(0, 30)
    await expect(create(name, spec)).rejects.toThrow(code === 'SuccessPolicy' ? /Indexed/ : words)
    const template = { metadata: {}, spec: bodyOf(name, spec).spec }
    const cronJob = { schedule: '0 0 * * *', jobTemplate: template }
    const file = join(scratch, 'cronjob.json')
    const metadata = { name, namespace }
    await writeFile(
      file,
      JSON.stringify({ apiVersion: 'batch/v1', kind: 'CronJob', metadata, spec: cronJob }),
    )
    await expect(kubectl('create', '-f', file)).rejects.toThrow(
      code === 'NameTooLong' ? /39 characters/ : code === 'SuccessPolicy' ? /Indexed/ : words,
    )
  })

  it('MP-29: refuse a change that one pod cannot follow, and no other', async () => {
    const ref = await create('changed', { suspend: true })
    const patch = (body: object) => api.patch(jobs, ref, { type: 'merge', body })
    await expect(patch({ spec: { parallelism: 2 } })).rejects.toThrow(jobRefusals.ParallelismNotOne)
    await patch({ metadata: { annotations: { note: 'mine' } }, spec: { backoffLimit: 3 } })
  })

  it('MP-29: leave all other Jobs alone, and so does the operator', async () => {
    const { managedBy: _, ...spec } = bodyOf('other', { parallelism: 2 }).spec
    await api.create(jobs, { ...bodyOf('other'), spec }, { namespace })
    const ref = { namespace, name: 'other' }
    const { metadata, status } = await api.get(jobs, ref)
    const body = { ...(await api.get(jobs, ref)), status: { ...status, failed: 1 } }
    const told = { apiVersion: 'batch/v1', kind: 'Job', ...body }
    await expect(thief.replace(jobs, ref, told, { subresource: 'status' })).rejects.toThrow(
      /the status of no Job but those that it manages/,
    )
    await saved(await create('beside'), 'beside-0')
    expect((await api.get(jobs, ref)).metadata.resourceVersion).toBe(metadata.resourceVersion)
  })

  it('MP-29: want the user of such a Job to be allowed to make MigratingPods', async () => {
    await kubectl('create', 'role', 'edits', '--verb=create', '--resource=jobs.batch', '-n', namespace)
    await kubectl('create', 'rolebinding', 'ann-edits', '--role=edits', '--user=ann', '-n', namespace)
    const file = join(scratch, 'job.json')
    await writeFile(file, JSON.stringify(bodyOf('of-ann')))
    const asAnn = () => kubectl('--as=ann', '-n', namespace, 'create', '--dry-run=server', '-f', file)
    await eventually(async () =>
      expect(await asAnn().catch(String)).toMatch(/you may not create MigratingPods/),
    )
    const role = ['--clusterrole=understudy-edit', '--user=ann', '-n', namespace]
    await kubectl('create', 'rolebinding', 'ann-moves', ...role)
    expect(await eventually(asAnn)).toContain('created')
  })

  it('MP-29: leave the Jobs of a CronJob to its controller, whatever its name', async () => {
    const file = join(scratch, 'of-cronjob.json')
    await writeFile(file, JSON.stringify(bodyOf('of-cronjob', { parallelism: 2 })))
    const as = (user: string) => {
      const who = [`--as=${user}`, '--as-group=system:masters']
      return kubectl(...who, '-n', namespace, 'create', '--dry-run=server', '-f', file).catch(String)
    }
    expect(await as('system:serviceaccount:kube-system:cronjob-controller')).toContain('created')
    expect(await as('system:kube-controller-manager')).toContain('created')
    expect(await as('system:kube-scheduler')).toContain(jobRefusals.ParallelismNotOne)
  })

  it('MP-29: refuse a MigratingPod that ends with several containers, or with a livenessProbe', async () => {
    const created = (name: string, ...containers: object[]) => {
      const spec = { template: { spec: { restartPolicy: 'OnFailure', containers } } }
      return api.create(migratingPods, { ...kind, metadata: { name }, spec }, { namespace })
    }
    const livenessProbe = { tcpSocket: { port: 80 } }
    await expect(created('two', container, { ...container, name: 'b' })).rejects.toThrow(/one container/)
    await expect(created('probed', { ...container, livenessProbe })).rejects.toThrow(/livenessProbe/)
    await created('one', container)
    await api.delete(migratingPods, { namespace, name: 'one' })
  })

  it('MP-29: give a stolen token of the operator no MigratingPod but that of a Job, and where memory is allowed', async () => {
    const ref = await create('guarded')
    await saved(ref, 'guarded-0')
    const own = await api.get(migratingPods, ref)
    const { name: _, uid: __, resourceVersion: ___, ...metadata } = own.metadata
    const made = (name: string, more: object = {}, where = namespace) =>
      thief.create(
        migratingPods,
        { ...kind, metadata: { ...metadata, namespace: where, name, ...more }, spec: own.spec },
        { namespace: where },
      )
    await expect(made('free', { ownerReferences: [] })).rejects.toThrow(/no MigratingPod but those of Jobs/)
    await expect(made('free')).rejects.toThrow(/those of Jobs/)
    const taken = { ...own, ...kind, metadata: { ...own.metadata, ownerReferences: [] } }
    await expect(thief.replace(migratingPods, ref, taken)).rejects.toThrow(/those of Jobs/)
    await expect(thief.delete(migratingPods, ref)).rejects.toThrow(/only with its uid/)
    const template = { spec: { containers: [container] } }
    const users = { ...kind, metadata: { name: 'users' }, spec: { template } }
    await api.create(migratingPods, users, { namespace })
    await expect(thief.delete(migratingPods, { namespace, name: 'users' })).rejects.toThrow(/those of Jobs/)

    const other = 'unlabelled'
    await api.create(namespaces, { metadata: { name: other } })
    await expect(made('guarded', {}, other)).rejects.toThrow(/memory is not allowed/)
    // As deploy/memory-everywhere does: users need no label then, and the operator still does.
    const memory = ['validatingadmissionpolicybinding', 'understudy-memory']
    const binding = await kubectl('get', ...memory, '-o', 'json')
    await kubectl('delete', ...memory)
    await eventually(() => api.create(migratingPods, users, { namespace: other }))
    await expect(made('guarded', {}, other)).rejects.toThrow(/not allowed for Jobs in this namespace/)
    const file = join(scratch, 'binding.json')
    const { metadata: given, ...body } = JSON.parse(binding)
    await writeFile(file, JSON.stringify({ ...body, metadata: { name: given.name } }))
    await kubectl('create', '-f', file)
  })

  it('MP-29: keep no MigratingPod of a Job from the operator whose labels a user has changed', async () => {
    const ref = await create('marked', { backoffLimit: 0 })
    await saved(ref, 'marked-0')
    await api.patch(migratingPods, ref, { type: 'merge', body: { metadata: { labels: null } } })
    await agents.declareDead('marked-0')
    await eventually(async () => expect(await trueConditions(ref)).toContain('Failed'))
    expect(await isGone(api.get(migratingPods, ref))).toBe(true)
  })

  it('MP-29: that were removed and applied again still let the operator make MigratingPods', async () => {
    const file = join(project, 'deploy/migrating-jobs/admission.yaml')
    await kubectl('delete', '-f', file)
    await kubectl('apply', '-f', file)
    const body = join(scratch, 'refused.json')
    await writeFile(body, JSON.stringify(bodyOf('refused', { parallelism: 2 })))
    await eventually(async () =>
      expect(
        await kubectl('-n', namespace, 'create', '--dry-run=server', '-f', body).catch(String),
      ).toContain(jobRefusals.ParallelismNotOne),
    )
    await saved(await create('anew'), 'anew-0')
  })
})
