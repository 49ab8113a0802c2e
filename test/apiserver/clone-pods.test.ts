/** ClonePods, as the component installs them: the operator has its own rights; kubelet and agents are not real. */
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join, relative } from 'node:path'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { run } from '../../build/run.ts'
import { type ControlPlane, startControlPlane } from '../../playground/control-plane.ts'
import { type ClonePodSpec, clonePodLabel, clonePods } from '../../src/api/clone-pod.ts'
import { memoryAllowed } from '../../src/api/memory-permission.ts'
import { migratingPods } from '../../src/api/migrating-pod.ts'
import { type Api, createApi } from '../../src/kube/api.ts'
import { loadConnection } from '../../src/kube/connection.ts'
import { isKubeError } from '../../src/kube/errors.ts'
import { ownerReference } from '../../src/kube/owner.ts'
import { jobs, namespaces, nodes } from '../../src/kube/resources.ts'
import { eventually } from '../support/eventually.ts'
import { project } from '../unit/deploy/manifests.ts'
import { type FakeKubelet, startFakeKubelet } from './lib/fake-kubelet.ts'
import { type OperatorProcess, startOperator } from './lib/operator-process.ts'
import { type FakeAgents, startFakeAgents } from './memory/fake-agents.ts'

let cluster: ControlPlane
let scratch = ''
let api: Api
let thief: Api
let kubelet: FakeKubelet
let agents: FakeAgents
let operator: OperatorProcess
let kubeconfig = ''
const [system, namespace] = ['understudy-system', 'shop']
const machines = ['m-a', 'm-b', 'm-c']

const kubectl = (...args: string[]) => run(cluster.kubectl, ['--kubeconfig', cluster.kubeconfigPath, ...args])
const lead = async () => {
  operator = startOperator(kubeconfig, system, '--migrating-jobs', '--clone-pods')
  await operator.leading()
}

beforeAll(async () => {
  scratch = await mkdtemp(join(tmpdir(), 'understudy-clone-pods-'))
  cluster = await startControlPlane()
  const overlay = join(scratch, 'overlay')
  await mkdir(overlay)
  const deploy = relative(overlay, join(project, 'deploy'))
  // Both components write MigratingPods, and neither denies those of the other.
  const content = `resources: [${deploy}/base]\ncomponents: [${deploy}/migrating-jobs, ${deploy}/clone-pods]\n`
  await writeFile(join(overlay, 'kustomization.yaml'), content)
  await kubectl('apply', '-k', overlay)
  await vi.waitFor(() => kubectl('get', 'bps,mpod,migrations,clonepods', '-A'), { interval: 100 })
  api = createApi({ connection: await loadConnection({ kubeconfig: cluster.kubeconfigPath }) })
  kubeconfig = await cluster.kubeconfigFor(`system:serviceaccount:${system}:understudy-operator`)
  thief = createApi({ connection: await loadConnection({ kubeconfig }) })
  await api.create(namespaces, { metadata: { name: namespace, labels: memoryAllowed } })
  for (const name of machines) await api.create(nodes, { metadata: { name } })
  const place = ({ metadata: { name } }: { readonly metadata: { readonly name: string } }) =>
    machines[name.charCodeAt(0) % machines.length] ?? ''
  kubelet = startFakeKubelet(api, namespace, { place })
  agents = await startFakeAgents(api, namespace, machines, { clones: true })
  await lead()
  const spec = { checkpoint: { interval: '2s' }, template }
  await api.create(migratingPods, { ...moving, metadata: { name: 'web' }, spec }, { namespace })
  await eventually(async () =>
    expect((await copyOf('web')).status?.conditions).toContainEqual(
      expect.objectContaining({ type: 'CheckpointReady', status: 'True' }),
    ),
  )
})
afterAll(async () => {
  await operator[Symbol.asyncDispose]()
  await agents[Symbol.asyncDispose]()
  await kubelet[Symbol.asyncDispose]()
  await Promise.all([api.close(), thief.close()])
  await cluster.stop()
  await rm(scratch, { recursive: true, force: true })
})

const group = 'backup.example.com/v1alpha1'
const moving = { apiVersion: group, kind: 'MigratingPod' }
const template = { spec: { containers: [{ name: 'app', image: 'app' }] } }
const source = { name: 'web-0' }

const bodyOf = (name: string, spec: Partial<ClonePodSpec> = {}) => ({
  ...{ apiVersion: group, kind: 'ClonePod', metadata: { name } },
  spec: { source, ...spec },
})
const create = (name: string, spec: Partial<ClonePodSpec> = {}) =>
  api.create(clonePods, bodyOf(name, spec), { namespace })
const copyOf = (name: string) => api.get(migratingPods, { namespace, name })
const read = (name: string) => api.get(clonePods, { namespace, name })
const isGone = (reading: Promise<unknown>) =>
  reading.then(
    () => false,
    (error: unknown) => isKubeError(error, 'NotFound'),
  )
const hasReason = (name: string, reason: string) =>
  eventually(async () => {
    const { status } = await read(name)
    expect(status?.conditions?.[0], JSON.stringify(status)).toMatchObject({ reason })
    return status
  })

describe('a ClonePod', () => {
  it('MP-28: makes a copy that is the user’s own once it serves, and is collected while the source runs on', async () => {
    await create('copy', { ttlSecondsAfterFinished: 3, target: { name: 'twin' } })
    const status = await hasReason('copy', 'Cloned')
    expect(status).toMatchObject({ phase: 'Succeeded', target: { name: 'twin', pod: 'twin-0' } })
    const twin = await copyOf('twin')
    expect(twin.metadata.ownerReferences).toBeUndefined()
    expect(twin.spec).toMatchObject({ clonePod: 'web-0', checkpoint: { interval: '2s' }, template })
    await eventually(async () => expect(await isGone(read('copy'))).toBe(true))
    expect((await copyOf('twin')).metadata.uid).toBe(twin.metadata.uid)
    expect((await copyOf('web')).status).toMatchObject({ state: 'Running', activePod: 'web-0' })
  })

  it('MP-28: waits for its source, also while no operator runs, and says for what', async () => {
    await create('early', { source: { name: 'later-0' } })
    await hasReason('early', 'SourceNotFound')
    operator.kill()
    await operator.exited()
    const spec = { checkpoint: { interval: '2s' }, template }
    await api.create(migratingPods, { ...moving, metadata: { name: 'later' }, spec }, { namespace })
    await lead()
    expect(await hasReason('early', 'Cloned')).toMatchObject({ target: { pod: 'early-0' } })
  })

  it('MP-28: fails after its time, with the reason, and leaves nothing', async () => {
    await create('late', { source: { name: 'never-0' }, timeoutSeconds: 2 })
    expect(await hasReason('late', 'DeadlineExceeded')).toMatchObject({ phase: 'Failed' })
    expect(await isGone(copyOf('late'))).toBe(true)
    await create('other', { source: { ...source, uid: 'of-another-pod' } })
    await hasReason('other', 'SourceReplaced')
  })

  it('MP-28: touches no MigratingPod of its target’s name', async () => {
    const { metadata } = await copyOf('web')
    await create('web', { timeoutSeconds: 2 })
    await hasReason('web', 'NameTaken')
    await hasReason('web', 'DeadlineExceeded')
    expect((await copyOf('web')).metadata.uid).toBe(metadata.uid)
  })

  it('MP-28: cannot be changed, and needs a name that pods can have', async () => {
    await create('fixed', { source: { name: 'never-0' } })
    const ref = { namespace, name: 'fixed' }
    const patched = api.patch(clonePods, ref, { type: 'merge', body: { spec: { source } } })
    await expect(patched).rejects.toThrow(/cannot be changed/)
    await expect(create('x'.repeat(51))).rejects.toThrow(/at most 50 characters/)
    await expect(create('bad', { target: { name: 'Not_A_Name' } })).rejects.toThrow(/spec.target.name/)
    await api.delete(clonePods, ref)
  })

  it('MP-28: as its sample has it, is shown by kubectl with source, phase and pod', async () => {
    const file = join(project, 'samples/clone-pods/clone-pod.yaml')
    await kubectl('-n', namespace, 'apply', '-f', file)
    await hasReason('experiment', 'SourceNotFound')
    const table = await kubectl('-n', namespace, 'get', 'clonepod', 'experiment', '-o', 'wide')
    expect(table).toMatch(
      /NAME +SOURCE +PHASE +POD +NODE +AGE +REASON +TARGET\nexperiment +roaming-0 +Pending/,
    )
    await kubectl('-n', namespace, 'delete', '-f', file)
  })
})

describe('the policies of ClonePods', () => {
  it('MP-28: ask its user for the right to the memory of its source, and for that to create MigratingPods', async () => {
    const bound = async (role: string) => {
      const name = `ann-${role}`
      await kubectl('create', 'rolebinding', name, `--clusterrole=${role}`, '--user=ann', '-n', namespace)
    }
    const file = join(scratch, 'clone-pod.json')
    await writeFile(file, JSON.stringify(bodyOf('of-ann')))
    const asAnn = () =>
      kubectl('--as=ann', '-n', namespace, 'create', '--dry-run=server', '-f', file).catch(String)
    await bound('understudy-clone-pods')
    await eventually(async () => expect(await asAnn()).toMatch(/reads all memory of pod web-0.*pods\/exec/s))
    const exec = ['--verb=create', '--resource=pods/exec', '--resource-name=web-0', '-n', namespace]
    await kubectl('create', 'role', 'exec', ...exec)
    await kubectl('create', 'rolebinding', 'exec', '--role=exec', '--user=ann', '-n', namespace)
    await eventually(async () => expect(await asAnn()).toMatch(/you may not create MigratingPods/))
    await bound('understudy-edit')
    await eventually(async () => expect(await asAnn()).toContain('created'))
    await writeFile(file, JSON.stringify(bodyOf('of-ann', { source: { name: 'other-0' } })))
    expect(await asAnn()).toMatch(/reads all memory of pod other-0/)
  })

  it('MP-28: give a stolen token of the operator no other memory, no other copy, and none that serves', async () => {
    await create('guarded', { source: { name: 'never-0' } })
    const { metadata } = await read('guarded')
    const made = (name: string, clonePod: string, more: object = {}) =>
      thief.create(
        migratingPods,
        {
          ...moving,
          metadata: {
            ...{ name, labels: { [clonePodLabel]: 'guarded' } },
            ownerReferences: [ownerReference(clonePods, metadata)],
            ...more,
          },
          spec: { template, clonePod },
        },
        { namespace },
      )
    const refusal = /must have its source and its target/
    await expect(made('guarded', 'web-0')).rejects.toThrow(refusal)
    await expect(made('elsewhere', 'never-0')).rejects.toThrow(refusal)
    const ownerReferences = [ownerReference(clonePods, { ...metadata, uid: 'another' })]
    await expect(made('guarded', 'never-0', { ownerReferences })).rejects.toThrow(refusal)
    await expect(made('guarded', 'never-0', { labels: {} })).rejects.toThrow(
      /but those of Jobs and ClonePods/,
    )
    await expect(thief.delete(clonePods, { namespace, name: 'guarded' })).rejects.toThrow(
      /that has not ended/,
    )

    const owner = { name: 'ghost', uid: 'ghost' }
    const ofJob = {
      labels: {},
      ownerReferences: [{ ...ownerReference(jobs, owner), apiVersion: 'batch/v1' }],
    }
    await expect(made('ghost', 'web-0', ofJob)).rejects.toThrow(/a Job no source of memory/)

    await create('served')
    await hasReason('served', 'Cloned')
    const ref = { namespace, name: 'served' }
    const own = await copyOf('served')
    const { uid } = own.metadata
    await expect(thief.delete(migratingPods, ref, { uid })).rejects.toThrow(/but those of Jobs and ClonePods/)
    const changed = { ...own, ...moving, spec: { ...own.spec, suspend: true } }
    await expect(thief.replace(migratingPods, ref, changed)).rejects.toThrow(
      /but those of Jobs and ClonePods/,
    )
    await api.delete(clonePods, { namespace, name: 'guarded' })
  })

  it('MP-28: let no user write the status', async () => {
    await create('told', { source: { name: 'never-0' } })
    await kubectl(
      'create',
      'role',
      'tells',
      '--verb=get,patch,update',
      '--resource=clonepods.backup.example.com/status,clonepods.backup.example.com',
      '-n',
      namespace,
    )
    await kubectl('create', 'rolebinding', 'bob-tells', '--role=tells', '--user=bob', '-n', namespace)
    const patch = ['--subresource=status', '--type=merge', '-p', '{"status":{"phase":"Failed"}}']
    await eventually(async () =>
      expect(
        await kubectl('--as=bob', '-n', namespace, 'patch', 'clonepod', 'told', ...patch).catch(String),
      ).toMatch(/only the operator may write the status/),
    )
    await api.delete(clonePods, { namespace, name: 'told' })
  })
})
