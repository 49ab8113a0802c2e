/**
 * A release on a real API server, by the real Helm: installed, upgraded, rolled back and removed while a client writes. No kubelet is
 * here, so the tests run the hook's command themselves, with the identity of its Job, and report for the Job.
 */
import { cp, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { objectsIn } from '../../../deploy/chart/kustomize.ts'

import { type ControlPlane, startControlPlane } from '../../../playground/control-plane.ts'
import { type CommandEnd, run, runToEnd } from '../../../playground/exec.ts'
import { type NodeReportStatus, nodeReports, retireRequested } from '../../../src/api/node-report.ts'
import { type Api, createApi } from '../../../src/kube/api.ts'
import { loadConnection } from '../../../src/kube/connection.ts'
import { eventually } from '../../support/eventually.ts'
import { buildMs, type HelmTools, openHelm } from '../../support/helm.ts'
import { project } from '../../unit/deploy/manifests.ts'
import { startWriter } from './writer.ts'

const namespace = 'understudy-system'
let tools: HelmTools
let cluster: ControlPlane
let admin: Api
beforeAll(async () => {
  tools = await openHelm()
  cluster = await startControlPlane()
  admin = createApi({ connection: await loadConnection({ kubeconfig: cluster.kubeconfigPath }) })
}, buildMs)
afterAll(async () => {
  await admin?.close()
  await cluster?.stop()
  await tools?.[Symbol.asyncDispose]()
})

const kubectl = (...args: string[]): Promise<string> =>
  run([cluster.kubectl, '--kubeconfig', cluster.kubeconfigPath, ...args])
const helm = (...args: string[]) =>
  tools.helm(...args, '--namespace', namespace, '--kubeconfig', cluster.kubeconfigPath)
/** @throws with Helm's message if it fails. */
async function succeeds(end: Promise<CommandEnd>): Promise<string> {
  const { code, stdout, stderr } = await end
  expect([code, stderr]).toEqual([0, expect.anything()])
  return stdout
}
const registry = ['--set', 'images.registry=registry.example/understudy']

const set = (name: string, spec: object) => ({
  apiVersion: 'backup.example.com/v1alpha1',
  kind: 'BackupPodSet',
  metadata: { name, namespace: 'default' },
  spec: {
    replicas: 1,
    template: { spec: { containers: [{ name: 'web', image: 'nginx:1.14.2' }] } },
    ...spec,
  },
})

async function apply(object: object, ...options: string[]): Promise<void> {
  const file = join(tools.scratch, 'object.json')
  await writeFile(file, JSON.stringify(object))
  await kubectl('apply', '-f', file, ...options)
}

/** Returns fields of an object, or nothing if there is none. */
const look = (path: string, ...of: string[]): Promise<string> =>
  kubectl('get', '--ignore-not-found', ...of, '-o', `jsonpath={${path}}`)
const argsOfOperator = () =>
  look('.spec.template.spec.containers[0].args', '-n', namespace, 'deployment/understudy-operator')
const stillInstalled = () =>
  look(
    '.items[*].metadata.name',
    '-A',
    'deployments,daemonsets,services,clusterroles,validatingadmissionpolicies',
    '-l',
    'app.kubernetes.io/name=understudy',
  )

test('D19.chart: an install without a registry says what to do, and changes nothing', async () => {
  const { code, stderr } = await helm('install', 'understudy', tools.chart, '--create-namespace')
  expect([code, stderr]).toEqual([
    1,
    expect.stringContaining('set images.registry: no public registry serves'),
  ])
  expect(await kubectl('get', 'namespaces', '-o', 'name')).not.toContain(namespace)
})

test('D19.helm: a release is installed, and its record fits into the API server', async () => {
  const said = await succeeds(helm('install', 'understudy', tools.chart, '--create-namespace', ...registry))
  expect(said).toContain('kubectl label namespace YOUR-NAMESPACE backup.example.com/memory=allowed')
  const manifest = objectsIn(await succeeds(helm('get', 'manifest', 'understudy')))
  expect(manifest.length).toBeGreaterThan(50)
  const file = join(tools.scratch, 'manifest.json')
  await writeFile(file, JSON.stringify({ apiVersion: 'v1', kind: 'List', items: manifest }))
  const present = objectsIn(await kubectl('get', '-f', file, '-o', 'yaml')).flatMap(({ items }) => items)
  expect(present).toHaveLength(manifest.length)
  // The kinds are served.
  await eventually(() => kubectl('get', 'bps', '-A'))
})

test('D19.helm: an upgrade brings newer kinds and parts while a client writes, and a rollback takes the parts back', async () => {
  await apply(set('plain', {}))
  const uid = await look('.metadata.uid', 'bps/plain')
  const later = join(tools.scratch, 'later')
  await cp(tools.chart, later, { recursive: true })
  for (const [file, from, to] of [
    ['Chart.yaml', /ersion: 0\.1\.0/g, 'ersion: 0.2.0'],
    ['templates/crds.yaml', /- bps$/m, '- bps\n      - understudyset'],
  ] as const) {
    const before = await readFile(join(later, file), 'utf8')
    const after = before.replace(from, to)
    expect(after).not.toBe(before)
    await writeFile(join(later, file), after)
  }
  const before = await argsOfOperator()
  const stop = startWriter(admin)
  const upgrade = helm(
    'upgrade',
    'understudy',
    later,
    ...registry,
    '--set',
    'clonePods.enabled=true,operator.replicas=3',
  )
  await succeeds(upgrade)
  expect(await argsOfOperator()).toContain('--clone-pods')
  expect(await argsOfOperator()).toContain('registry.example/understudy/waker:0.2.0')
  expect(await look('.spec.replicas', '-n', namespace, 'deployment/understudy-operator')).toBe('3')
  await eventually(async () => expect(await kubectl('get', 'understudyset,clonepods')).toContain('plain'))

  await succeeds(helm('rollback', 'understudy', '1'))
  expect(await argsOfOperator()).toBe(before)
  expect(await look('.spec.replicas', '-n', namespace, 'deployment/understudy-operator')).toBe('2')
  expect(await kubectl('get', 'clusterroles', '-o', 'name')).not.toContain('clone-pods')
  // A kind is kept, with the objects of users.
  expect(await kubectl('get', 'crd', '-o', 'name')).toContain('clonepods.backup.example.com')
  const { writes, failures } = await stop()
  expect(writes).toBeGreaterThan(10)
  expect(failures).toEqual([])
  expect(await look('.metadata.uid', 'bps/plain')).toBe(uid)
})

const hookAccount = `system:serviceaccount:${namespace}:understudy-uninstall`

const uidOfJob = () => look('.metadata.uid', '-n', namespace, 'job/understudy-uninstall')

/** Runs the command of the hook's Job as its account, and reports the end of the Job as Kubernetes' controller does. */
async function runHook(jobOfBefore = ''): Promise<CommandEnd> {
  const args = await eventually(async () => {
    expect(['', jobOfBefore]).not.toContain(await uidOfJob())
    const text = await look(
      '.spec.template.spec.containers[0].args',
      '-n',
      namespace,
      'job/understudy-uninstall',
    )
    const all: unknown = JSON.parse(text)
    return Array.isArray(all) ? all.map(String) : []
  })
  const kubeconfig = await cluster.kubeconfigFor(hookAccount, ['system:serviceaccounts'])
  const end = await runToEnd([
    process.execPath,
    join(project, 'src/main.ts'),
    ...args,
    '--kubeconfig',
    kubeconfig,
  ])
  const now = new Date().toISOString().replace(/\.\d+/, '')
  const isDone = end.code === 0
  const types = isDone ? ['SuccessCriteriaMet', 'Complete'] : ['FailureTarget', 'Failed']
  const status = {
    ...{ startTime: now, ...(isDone ? { completionTime: now, succeeded: 1 } : { failed: 1 }) },
    conditions: types.map(type => ({ type, status: 'True', lastProbeTime: now, lastTransitionTime: now })),
  }
  const patch = ['patch', 'job/understudy-uninstall', '--subresource=status', '--type=merge']
  await kubectl('-n', namespace, ...patch, '-p', JSON.stringify({ status }))
  return end
}

const can = async (...question: string[]): Promise<boolean> =>
  (
    await runToEnd([
      cluster.kubectl,
      '--kubeconfig',
      cluster.kubeconfigPath,
      'auth',
      'can-i',
      '--quiet',
      '--as',
      hookAccount,
      ...question,
    ])
  ).code === 0

test('D19.removal: `helm uninstall` deletes nothing while sets keep memory, and the hook has no right too many', async () => {
  await kubectl('label', 'namespace', 'default', 'backup.example.com/memory=allowed')
  await apply(set('kept', { hotBackups: 1, checkpoint: { interval: '1s' } }))
  const before = await stillInstalled()
  const uninstall = helm('uninstall', 'understudy', '--timeout', '120s')
  await eventually(async () =>
    expect(await look('.metadata.name', '-n', namespace, 'job/understudy-uninstall')).not.toBe(''),
  )
  for (const question of ['list backuppodsets -A', 'list nodereports', 'patch nodereports', 'list nodes'])
    expect(await can(...question.split(' ')), question).toBe(true)
  for (const question of [
    ...[
      'delete backuppodsets -A',
      'patch backuppodsets -A',
      'list pods -A',
      'patch nodes',
      'delete nodereports',
    ],
    ...[`get secrets -n ${namespace}`, 'patch nodereports --subresource=status', 'create jobs -A'],
  ])
    expect(await can(...question.split(' ')), question).toBe(false)
  // Its pod is fit for the pod security level that docs/install.md gives the namespace.
  await kubectl('label', 'namespace', namespace, 'pod-security.kubernetes.io/enforce=restricted')
  const template = await look('.spec.template.spec', '-n', namespace, 'job/understudy-uninstall')
  const metadata = { name: 'probe', namespace }
  await apply({ apiVersion: 'v1', kind: 'Pod', metadata, spec: JSON.parse(template) }, '--dry-run=server')
  const hook = await runHook()
  expect([hook.code, hook.stderr]).toEqual([3, expect.stringContaining('default/kept')])
  expect((await uninstall).code).toBe(1)
  expect(await stillInstalled()).toBe(before)
  // Helm upgrades no release that it was to remove; this is the way back in docs/install.md.
  expect(await succeeds(helm('status', 'understudy'))).toContain('STATUS: uninstalling')
  await succeeds(helm('rollback', 'understudy', '3'))
  expect(await succeeds(helm('status', 'understudy'))).toContain('STATUS: deployed')
  // Its log says why, and the account is gone.
  expect(await kubectl('-n', namespace, 'get', 'jobs', '-o', 'name')).toContain('understudy-uninstall')
  expect(await kubectl('get', 'clusterroles', '-o', 'name')).not.toContain('understudy-uninstall')
})

/** Stands for the agents: writes `retired` into a report once the hook has annotated it. */
async function retireWhenAsked(name: string): Promise<void> {
  await eventually(async () => {
    const { metadata } = await admin.get(nodeReports, { name })
    expect(metadata.annotations?.[retireRequested]).toBeDefined()
  })
  const status: NodeReportStatus = {
    ...{ version: '0.1.0', address: '10.0.0.1:9443', fingerprint: 'ab'.repeat(32), kernel: '6.18.0' },
    ...{ criu: '4.2.1', architecture: 'x86_64', checks: [], ready: false, slots: [], retired: true },
    updatedAt: new Date().toISOString(),
  }
  await kubectl(
    'patch',
    `nodereport/${name}`,
    '--subresource=status',
    '--type=merge',
    '-p',
    JSON.stringify({ status }),
  )
}

test('D19.removal: it waits for the sweep of all nodes, deletes the installation, and leaves the sets of users', async () => {
  await kubectl('delete', 'bps/kept')
  const names = ['one', 'two']
  for (const name of names)
    await apply({ apiVersion: 'backup.example.com/v1alpha1', kind: 'NodeReport', metadata: { name } })
  const uid = await look('.metadata.uid', 'bps/plain')
  const refused = await uidOfJob()
  const uninstall = helm('uninstall', 'understudy', '--timeout', '120s')
  const [hook] = await Promise.all([runHook(refused), ...names.map(retireWhenAsked)])
  expect([hook.code, hook.stdout]).toEqual([
    0,
    expect.stringContaining('nothing of Understudy is left on 2 nodes'),
  ])
  await succeeds(uninstall)
  expect(await stillInstalled()).toBe('')
  expect(await kubectl('-n', namespace, 'get', 'jobs,serviceaccounts,secrets', '-o', 'name')).toBe('')
  await eventually(async () => {
    const kinds = await kubectl('get', 'crd', '-o', 'name')
    expect(kinds).toContain('backuppodsets.backup.example.com')
    expect(kinds).not.toContain('nodereports')
  })
  expect(await look('.metadata.uid', 'bps/plain')).toBe(uid)
})

test('D19.helm: a later install takes the kinds over that the one before has left', async () => {
  await kubectl('delete', 'namespace', 'understudy-agents', '--ignore-not-found', '--wait=false')
  // No controller ends namespaces here, so the agents get another one.
  const elsewhere = ['--set', 'agents.namespace=other-agents']
  await succeeds(helm('install', 'understudy', tools.chart, ...registry, ...elsewhere))
  expect(await argsOfOperator()).toContain('--agent-namespace=other-agents')
  await eventually(async () => expect(await kubectl('get', 'nodereports', '-o', 'name')).toBe(''))
})
