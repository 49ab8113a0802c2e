// Long because it is a list of requests with the answers of the policies.
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { run } from '../../build/run.ts'
import { type ControlPlane, startControlPlane } from '../../playground/control-plane.ts'
import { backupPodSets } from '../../src/api/backuppodset.ts'
import { diskHalfAnnotation } from '../../src/api/disk-half.ts'
import { memoryAllowed } from '../../src/api/memory-permission.ts'
import { migratingPodLabel, migratingPods } from '../../src/api/migrating-pod.ts'
import { migrations } from '../../src/api/migration.ts'
import { type NodeReportStatus, nodeReports, silencesAnnotation } from '../../src/api/node-report.ts'
import { numberedSlotLeaseBody } from '../../src/api/numbered-slot.ts'
import { longestRecord, servingRecordAnnotation } from '../../src/api/serving-record.ts'
import { type Api, createApi } from '../../src/kube/api.ts'
import { loadConnection } from '../../src/kube/connection.ts'
import { apiVersionOf, leases, namespaces, nodes, pods } from '../../src/kube/resources.ts'
import { project } from '../unit/deploy/manifests.ts'
import { apiWithToken } from './lib/bound-token.ts'

// Own API server with all of deploy/ installed: the policies affect every request to it.
let cluster: ControlPlane
const users: Partial<Record<User, Api>> = {}

const agents = { namespace: 'understudy-agents', serviceAccount: 'understudy-agent' }
const operator = { namespace: 'understudy-system', serviceAccount: 'understudy-operator' }
type User =
  | 'admin'
  | 'agent of n1'
  | 'agent without a pod'
  | 'operator'
  | 'edit'
  | 'kubelet'
  | 'scheduler'
  | 'replicaset'
  | 'gc'

const containers = [{ name: 'app', image: 'app' }]
const marked = {
  labels: { type: 'hotbackup', 'backup.example.com/backuppodset': 'web', app: 'web' },
  annotations: { 'backup.example.com/epoch': '3', note: 'mine' },
}
const condition = (type: string, status = 'True') => ({
  type,
  status,
  reason: 'Test',
  message: '',
  lastTransitionTime: '2026-01-01T00:00:00Z',
})
const lease = {
  apiVersion: 'coordination.k8s.io/v1',
  kind: 'Lease',
  ...numberedSlotLeaseBody({
    ...{
      namespace: 'shop',
      name: 'web-0',
      incarnation: '0a1b2c3d',
      group: 'web',
      slot: 0,
      epoch: 1,
      node: 'n1',
      ip: undefined,
      heir: undefined,
    },
    ...{ holder: { name: 'p', uid: 'u' }, holders: [] },
  }),
}

beforeAll(async () => {
  cluster = await startControlPlane()
  const admin = createApi({ connection: await loadConnection({ kubeconfig: cluster.kubeconfigPath }) })
  users.admin = admin
  const kubectl = (...args: string[]) =>
    run(cluster.kubectl, ['--kubeconfig', cluster.kubeconfigPath, ...args])
  await kubectl('apply', '-k', join(project, 'deploy'))
  await vi.waitFor(() => kubectl('get', 'bps,nodereports,mpod', '-A'), { interval: 100 })
  await admin.create(namespaces, { metadata: { name: 'shop' } })
  await admin.create(namespaces, { metadata: { name: 'labelled', labels: memoryAllowed } })
  // Pods with our label may only be created in namespaces with sets, whichever user creates them.
  const set = { apiVersion: apiVersionOf(backupPodSets), kind: backupPodSets.kind, metadata: { name: 'any' } }
  const created = { ...set, spec: { replicas: 1, template: { spec: { containers } } } }
  await admin.create(backupPodSets, created, { namespace: 'shop' })
  for (const name of ['n1', 'n2']) {
    await admin.create(nodes, {
      metadata: { name, labels: { zone: 'a', 'backup.example.com/stage': 'ready' } },
    })
    const kind = { apiVersion: apiVersionOf(nodeReports), kind: nodeReports.kind }
    await admin.create(nodeReports, { ...kind, metadata: { name } })
    const spec = { nodeName: name, serviceAccountName: agents.serviceAccount, containers }
    await admin.create(pods, { metadata: { name: `agent-${name}` }, spec }, { namespace: agents.namespace })
    await admin.create(
      pods,
      { metadata: { name: `web-${name}`, ...marked }, spec: { nodeName: name, containers } },
      { namespace: 'shop' },
    )
    await admin.create(
      pods,
      { metadata: { name: `other-${name}` }, spec: { nodeName: name, containers } },
      { namespace: 'shop' },
    )
    const status = {
      podIP: '10.0.0.9',
      conditions: [condition('Ready'), condition('backup.example.com/serving')],
    }
    const ref = { namespace: 'shop', name: `web-${name}` }
    await admin.patch(pods, ref, { type: 'merge', body: { status } }, { subresource: 'status' })
  }
  await admin.patch(
    nodeReports,
    { name: 'n1' },
    { type: 'merge', body: { status: reportStatus } },
    { subresource: 'status' },
  )
  const metadata = { annotations: { 'backup.example.com/new-key': 'ef'.repeat(32) } }
  await admin.patch(nodeReports, { name: 'n1' }, { type: 'merge', body: { metadata } })
  await admin.create(pods, newPod({ name: 'waiting', ...marked }), { namespace: 'shop' })
  const long = { ...marked.annotations, [servingRecordAnnotation]: 'x'.repeat(longestRecord + 1) }
  const spec = { nodeName: 'n1', containers }
  await admin.create(
    pods,
    { metadata: { name: 'long-n1', ...marked, annotations: long }, spec },
    { namespace: 'shop' },
  )
  await admin.create(leases, lease, { namespace: 'shop' })
  await admin.create(migrations, move('UserTriggered', { name: 'stored' }), { namespace: 'shop' })
  users['agent of n1'] = await apiWithToken(cluster, admin, { ...agents, pod: 'agent-n1' })
  users['agent without a pod'] = await apiWithToken(cluster, admin, agents)
  users.operator = await apiWithToken(cluster, admin, operator)
  const certified = async (user: string, groups?: string[]) =>
    createApi({ connection: await loadConnection({ kubeconfig: await cluster.kubeconfigFor(user, groups) }) })
  users.edit = await certified('edith')
  // Stands in for the cluster role `edit`, whose rules come from a controller that does not run here.
  const resources = '--resource=pods,leases.coordination.k8s.io,migrations.backup.example.com/status'
  await kubectl('-n', 'shop', 'create', 'role', 'edit', '--verb=get,create,patch,delete', resources)
  await kubectl('-n', 'shop', 'create', 'rolebinding', 'edith', '--role=edit', '--user=edith')
  for (const namespace of ['shop', 'labelled'])
    await kubectl(
      ...['-n', namespace, 'create', 'rolebinding', 'sets', '--clusterrole=understudy-edit', '--user=edith'],
    )
  users.kubelet = await certified('system:node:n1', ['system:nodes'])
  users.scheduler = await certified('system:kube-scheduler')
  const controller = 'system:serviceaccount:kube-system:'
  const groups = ['system:serviceaccounts', 'system:serviceaccounts:kube-system']
  users.replicaset = await certified(`${controller}replicaset-controller`, groups)
  users.gc = await certified(`${controller}generic-garbage-collector`, groups)
  // The server applies a new policy only after a moment.
  await vi.waitFor(() => expect(attempt(attacks[0]?.[1] as Attempt)).rejects.toThrow(), {
    interval: 200,
  })
})
afterAll(async () => {
  await Promise.all(Object.values(users).map(api => api.close()))
  await cluster?.stop()
})

interface Attempt {
  readonly as: User
  readonly method: 'POST' | 'PATCH' | 'DELETE'
  readonly path: string
  readonly body?: unknown
  readonly type?: 'merge' | 'strategic' | 'json'
}

/** Dry run: the server does everything except store the object. */
async function attempt({ as, method, path, body, type = 'strategic' }: Attempt): Promise<unknown> {
  const contentType = `application/${type === 'json' ? 'json-patch' : `${type}-merge-patch`}+json`
  const options = { query: { dryRun: 'All' }, ...(body === undefined ? {} : { body }) }
  const answer = await users[as]?.request(method, path, {
    ...options,
    ...(method === 'PATCH'
      ? { contentType: type === 'merge' ? 'application/merge-patch+json' : contentType }
      : {}),
  })
  if (answer === undefined || answer.status >= 300) throw new Error(JSON.stringify(answer?.body))
  return answer.body
}

const pod = (name: string, subresource = '') =>
  `/api/v1/namespaces/shop/pods/${name}${subresource && `/${subresource}`}`
const status = (as: User, name: string, body: object, type: Attempt['type'] = 'strategic'): Attempt => ({
  ...{ as, method: 'PATCH', type, path: pod(name, 'status') },
  body,
})
const patch = (as: User, path: string, body: object, type: Attempt['type'] = 'merge'): Attempt => ({
  ...{ as, method: 'PATCH', path, body, type },
})
const create = (as: User, path: string, body: object): Attempt => ({ as, method: 'POST', path, body })
const conditions = (type: string, value?: string) => ({ status: { conditions: [condition(type, value)] } })
const serving = conditions('backup.example.com/serving', 'False')
const leasesPath = '/apis/coordination.k8s.io/v1/namespaces/shop/leases'
const leasePath = `${leasesPath}/web-0`
const reportPath = (name: string) => `/apis/backup.example.com/v1alpha1/nodereports/${name}/status`
const ownReport = '/apis/backup.example.com/v1alpha1/nodereports/n1'
const reportStatus: NodeReportStatus = {
  ...{ version: '0.1.0', address: '10.0.0.1:9443', fingerprint: 'ab'.repeat(32), kernel: '6', criu: '4.2' },
  ...{ architecture: 'x86_64', checks: [], ready: true, slots: [], updatedAt: '2026-01-01T00:00:00Z' },
}
const event = (controller: string, instance: string) => ({
  ...{ apiVersion: 'events.k8s.io/v1', kind: 'Event', metadata: { generateName: 'x-' } },
  ...{ reportingController: controller, reportingInstance: instance },
  ...{ eventTime: '2026-01-01T00:00:00.000000Z', type: 'Normal', reason: 'Saved', action: 'Save', note: '' },
  regarding: { apiVersion: 'v1', kind: 'Pod', namespace: 'shop', name: 'web-n1' },
})
const eventsPath = '/apis/events.k8s.io/v1/namespaces/shop/events'
const podsPath = '/api/v1/namespaces/shop/pods'
const newPod = (metadata: object) => ({
  ...{ apiVersion: 'v1', kind: 'Pod' },
  metadata: { name: 'new', ...metadata },
  spec: { containers },
})

const setOwner = {
  ...{ apiVersion: 'backup.example.com/v1alpha1', kind: 'BackupPodSet', name: 'web', uid: 'u' },
  controller: true,
}

const movesPath = '/apis/backup.example.com/v1alpha1/namespaces/shop/migrations'
const ofSet = { labels: { 'backup.example.com/backuppodset': 'web' } }
const move = (priority: string, metadata: object = {}) => ({
  ...{ apiVersion: 'backup.example.com/v1alpha1', kind: 'Migration', metadata: { name: 'm', ...metadata } },
  spec: { source: { name: 'web-n1' }, priority },
})

const binding = (metadata: object = {}) => ({
  ...{ apiVersion: 'v1', kind: 'Binding', metadata: { name: 'waiting', ...metadata } },
  target: { kind: 'Node', name: 'n1' },
})

/** RBAC allows each of these to its user, so only the policies can refuse it. */
const attacks: readonly (readonly [string, Attempt])[] = [
  ['an agent says that a pod of another node died', status('agent of n1', 'web-n2', serving)],
  ['a token that is bound to no node', status('agent without a pod', 'web-n1', serving)],
  ['an agent writes to a pod of no set', status('agent of n1', 'other-n1', serving)],
  ['an agent says that a pod is ready', status('agent of n1', 'web-n1', conditions('Ready', 'False'))],
  [
    'an agent invents a condition of ours',
    status('agent of n1', 'web-n1', conditions('backup.example.com/other')),
  ],
  [
    'an agent takes conditions away',
    status('agent of n1', 'web-n1', [{ op: 'remove', path: '/status/conditions' }], 'json'),
  ],
  [
    'an agent gives a pod another address',
    status('agent of n1', 'web-n1', { status: { podIP: '10.6.6.6' } }),
  ],
  ['an agent says that a pod failed', status('agent of n1', 'web-n1', { status: { phase: 'Failed' } })],
  [
    'an agent makes a primary',
    status('agent of n1', 'web-n1', { metadata: { labels: { type: 'primary' } } }),
  ],
  [
    'an agent moves an epoch',
    status('agent of n1', 'web-n1', { metadata: { annotations: { 'backup.example.com/epoch': '9' } } }),
  ],
  [
    'an agent removes an annotation',
    status('agent of n1', 'web-n1', [{ op: 'remove', path: '/metadata/annotations' }], 'json'),
  ],
  [
    'an agent writes the facts of a pod of another node',
    status('agent of n1', 'web-n2', { metadata: { annotations: { [servingRecordAnnotation]: '{}' } } }),
  ],
  [
    'an agent writes more facts than any pod has',
    status('agent of n1', 'web-n1', {
      metadata: { annotations: { [servingRecordAnnotation]: 'x'.repeat(longestRecord + 1) } },
    }),
  ],
  [
    'a user writes the facts of an agent',
    patch('edit', pod('web-n1'), { metadata: { annotations: { [servingRecordAnnotation]: '{}' } } }),
  ],
  ['an agent keeps a pod from going', status('agent of n1', 'web-n1', { metadata: { finalizers: ['a/b'] } })],
  [
    'an agent gives its node another key',
    patch('agent of n1', reportPath('n1'), { status: { ...reportStatus, fingerprint: 'cd'.repeat(32) } }),
  ],
  [
    'an agent allows itself another key',
    patch('agent of n1', ownReport, {
      metadata: { annotations: { 'backup.example.com/new-key': 'cd'.repeat(32) } },
    }),
  ],
  [
    'an agent keeps its report from going with its Node',
    patch('agent of n1', ownReport, {
      metadata: { ownerReferences: [{ apiVersion: 'v1', kind: 'Node', name: 'n2', uid: 'u' }] },
    }),
  ],
  ['an agent holds its report', patch('agent of n1', ownReport, { metadata: { finalizers: ['a/b'] } })],
  ['an agent reports for another node', patch('agent of n1', reportPath('n2'), { status: reportStatus })],
  [
    'an agent makes the report of another node',
    create('agent of n1', '/apis/backup.example.com/v1alpha1/nodereports', {
      ...{ apiVersion: 'backup.example.com/v1alpha1', kind: 'NodeReport', metadata: { name: 'n3' } },
    }),
  ],
  [
    'a token without a node reports',
    patch('agent without a pod', reportPath('n1'), { status: reportStatus }),
  ],
  ['an agent lets another one speak', create('agent of n1', eventsPath, event('understudy-agent', 'n2'))],
  [
    'an agent speaks of what is no pod',
    create('agent of n1', eventsPath, {
      ...event('understudy-agent', 'n1'),
      regarding: { apiVersion: 'v1', kind: 'Secret', namespace: 'shop', name: 'x' },
    }),
  ],
  ['an agent lets the scheduler speak', create('agent of n1', eventsPath, event('default-scheduler', 'n1'))],
  ['the operator drains a node', patch('operator', '/api/v1/nodes/n1', { spec: { unschedulable: true } })],
  [
    'the operator changes another label of a node',
    patch('operator', '/api/v1/nodes/n1', { metadata: { labels: { zone: 'b' } } }),
  ],
  [
    'the operator takes a label of a node away',
    patch('operator', '/api/v1/nodes/n1', { metadata: { labels: { zone: null } } }),
  ],
  [
    'the operator allows a node another key',
    patch('operator', ownReport, {
      metadata: { annotations: { 'backup.example.com/new-key': 'cd'.repeat(32) } },
    }),
  ],
  [
    'the operator takes the owner of a report away',
    patch('operator', ownReport, {
      metadata: { ownerReferences: [{ apiVersion: 'v1', kind: 'Node', name: 'n2', uid: 'u' }] },
    }),
  ],
  [
    'an agent takes a statement of the API server back',
    patch('agent of n1', ownReport, { metadata: { annotations: { [silencesAnnotation]: '0' } } }),
  ],
  [
    'an agent writes its half of the disk keys',
    patch('agent of n1', ownReport, { metadata: { annotations: { [diskHalfAnnotation]: 'forged' } } }),
  ],
  ['a user makes a primary', patch('edit', pod('web-n1'), { metadata: { labels: { type: 'primary' } } })],
  [
    'a user gives a pod a role',
    patch('edit', pod('web-n1'), { metadata: { labels: { 'backup.example.com/role': 'primary' } } }),
  ],
  [
    'a user takes a pod out of its set',
    patch('edit', pod('web-n1'), { metadata: { labels: { 'backup.example.com/backuppodset': null } } }),
  ],
  [
    'a user gives a pod a slot',
    patch('edit', pod('other-n1'), { metadata: { labels: { 'backup.example.com/slot': '0' } } }),
  ],
  [
    'a user changes an epoch',
    patch('edit', pod('web-n1'), { metadata: { annotations: { 'backup.example.com/epoch': '9' } } }),
  ],
  [
    'a user takes all labels off a pod',
    patch('edit', pod('web-n1'), [{ op: 'remove', path: '/metadata/labels' }], 'json'),
  ],
  [
    'whoever binds a pod gives it an epoch',
    create(
      'scheduler',
      pod('waiting', 'binding'),
      binding({ annotations: { 'backup.example.com/epoch': '9' } }),
    ),
  ],
  ['a user makes a pod of a set', create('edit', podsPath, newPod({ labels: marked.labels }))],
  ['a template makes pods of a set', create('replicaset', podsPath, newPod({ labels: marked.labels }))],
  [
    'a template makes pods with memory',
    create('edit', podsPath, newPod({ annotations: { 'backup.example.com/memory': 'kept' } })),
  ],
  ['a kubelet says that its pod serves', status('kubelet', 'web-n1', serving)],
  [
    'a kubelet takes conditions away',
    status('kubelet', 'web-n1', [{ op: 'remove', path: '/status/conditions' }], 'json'),
  ],
  [
    'a kubelet says that its node is a stage',
    patch('kubelet', '/api/v1/nodes/n1', { metadata: { labels: { 'backup.example.com/stage': 'else' } } }),
  ],
  ['a user promotes by the Lease', patch('edit', leasePath, { spec: { holderIdentity: 'mine' } })],
  [
    'a user names a holder of memory',
    patch('edit', leasePath, { metadata: { annotations: { 'backup.example.com/holders': 'n2' } } }),
  ],
  [
    'a user takes the label off a Lease',
    patch('edit', leasePath, { metadata: { labels: { 'backup.example.com/backuppodset': null } } }),
  ],
  [
    'a user makes the Lease of a slot',
    create('edit', leasesPath, { ...lease, metadata: { ...lease.metadata, name: 'web-1' } }),
  ],
  ['a user lets a Migration come before all others', create('edit', movesPath, move('SystemCritical'))],
  [
    'a user lets a Migration begin',
    {
      ...{ as: 'edit', method: 'PATCH', type: 'merge', path: `${movesPath}/stored/status` },
      body: { status: { phase: 'Reserving' } },
    },
  ],
  ['a user deletes the Lease of a slot', { as: 'edit', method: 'DELETE', path: leasePath }],
]

const allowed: readonly (readonly [string, Attempt])[] = [
  ['an agent says that a pod of its node died', status('agent of n1', 'web-n1', serving)],
  [
    'an agent writes the facts beside it',
    status('agent of n1', 'web-n1', {
      ...serving,
      metadata: { annotations: { [servingRecordAnnotation]: '{}' } },
    }),
  ],
  [
    'an agent adds the facts to a condition of before',
    status(
      'agent of n1',
      'web-n1',
      { metadata: { annotations: { [servingRecordAnnotation]: '{}' } } },
      'merge',
    ),
  ],
  [
    'an agent writes as many facts as it may',
    status('agent of n1', 'web-n1', {
      metadata: { annotations: { [servingRecordAnnotation]: 'x'.repeat(longestRecord) } },
    }),
  ],
  [
    'an agent leaves facts of before as they are, however long',
    status('agent of n1', 'long-n1', conditions('backup.example.com/understudy')),
  ],
  [
    'an agent says that a pod can take over',
    status('agent of n1', 'web-n1', conditions('backup.example.com/understudy')),
  ],
  ['an agent reports for its node', patch('agent of n1', reportPath('n1'), { status: reportStatus })],
  [
    'an agent has the key that an administrator has allowed',
    patch('agent of n1', reportPath('n1'), { status: { ...reportStatus, fingerprint: 'ef'.repeat(32) } }),
  ],
  [
    'an agent gives its report to its Node',
    patch('agent of n1', ownReport, {
      metadata: { ownerReferences: [{ apiVersion: 'v1', kind: 'Node', name: 'n1', uid: 'u' }] },
    }),
  ],
  ['an agent makes an event', create('agent of n1', eventsPath, event('understudy-agent', 'n1'))],
  [
    'the operator states that a node is silent',
    patch('operator', ownReport, { metadata: { annotations: { [silencesAnnotation]: '1' } } }),
  ],
  [
    'the operator tells a node its half of the disk keys',
    patch('operator', ownReport, { metadata: { annotations: { [diskHalfAnnotation]: 'sealed' } } }),
  ],
  [
    'the operator makes a primary',
    patch('operator', pod('web-n1'), {
      metadata: {
        labels: {
          type: 'primary',
          'backup.example.com/role': 'primary',
          'backup.example.com/slot': '1',
        },
      },
    }),
  ],
  [
    'the operator makes a pod of a set',
    create('operator', podsPath, newPod({ ...marked, ownerReferences: [setOwner] })),
  ],
  ['the operator writes a Lease', patch('operator', leasePath, { spec: { holderIdentity: 'next' } })],
  [
    'the operator says that a node is a stage',
    patch('operator', '/api/v1/nodes/n1', { metadata: { labels: { 'backup.example.com/stage': null } } }),
  ],
  [
    'an administrator repairs by hand',
    patch('admin', pod('web-n1'), { metadata: { labels: { type: 'primary' } } }),
  ],
  [
    'a user labels and annotates what is his',
    patch('edit', pod('web-n1'), { metadata: { labels: { app: 'x' }, annotations: { note: null } } }),
  ],
  [
    'a user labels a pod of no set as he likes',
    patch('edit', pod('other-n1'), { metadata: { labels: { type: 'primary' } } }),
  ],
  [
    'a user asks for something',
    patch('edit', pod('web-n1'), {
      metadata: { annotations: { 'backup.example.com/checkpoint-requested': '2026-01-01T00:00:00Z' } },
    }),
  ],
  ['a user deletes a pod of a set', { as: 'edit', method: 'DELETE', path: pod('web-n1') }],
  ['a user makes a pod', create('edit', podsPath, newPod({ labels: { type: 'primary', app: 'web' } }))],
  [
    'a user makes a Lease',
    create('edit', leasesPath, { ...lease, metadata: { name: 'mine', namespace: 'shop' } }),
  ],
  ['a user moves a pod', create('edit', movesPath, move('UserTriggered'))],
  ['an administrator lets a Migration come first', create('admin', movesPath, move('SystemCritical'))],
  ['the operator empties a node', create('operator', movesPath, move('SystemCritical', ofSet))],
  ['a template makes pods', create('replicaset', podsPath, newPod({ labels: { app: 'web' } }))],
  [
    'a kubelet says how its pod is',
    status('kubelet', 'web-n1', { status: { phase: 'Running', conditions: [condition('Ready', 'False')] } }),
  ],
  ['a scheduler binds a pod of a set', create('scheduler', pod('waiting', 'binding'), binding())],
  [
    'a kubelet labels its node',
    patch('kubelet', '/api/v1/nodes/n1', { metadata: { labels: { 'kubernetes.io/arch': 'amd64' } } }),
  ],
  ['the garbage collector deletes a Lease', { as: 'gc', method: 'DELETE', path: leasePath }],
  ['the garbage collector changes its owners', patch('gc', leasePath, { metadata: { finalizers: ['x/y'] } })],
]

const setOf = (spec: object): object => ({
  ...{ apiVersion: 'backup.example.com/v1alpha1', kind: 'BackupPodSet', metadata: { name: 'new' } },
  spec: { template: { spec: { containers } }, ...spec },
})
const setsIn = (namespace: string) =>
  `/apis/backup.example.com/v1alpha1/namespaces/${namespace}/backuppodsets`

describe('D10.permission: memory is asked for where an administrator has labelled the namespace', () => {
  const asking: readonly (readonly [string, object])[] = [
    ['checkpoint', { checkpoint: {} }],
    ['checkpoint of a source', { checkpoint: { source: 'criu' } }],
    ['checkpoint with a mode', { checkpoint: {}, hotBackup: { mode: 'Staged' } }],
  ]
  it.each(asking)('%s', async (_, spec) => {
    const refused = attempt(create('edit', setsIn('shop'), setOf(spec)))
    await expect(refused).rejects.toThrow(
      /memory is not allowed in this namespace: .*ValidatingAdmissionPolicy|ValidatingAdmissionPolicy 'understudy-memory'.*memory=allowed/,
    )
    await expect(attempt(create('edit', setsIn('labelled'), setOf(spec)))).resolves.toBeDefined()
  })

  it.each([
    ['no memory', {}],
    ['a state over HTTP', { checkpoint: { source: 'http', http: { port: 80 } } }],
    ['hot backups that run', { checkpoint: {}, hotBackup: { mode: 'Warm' } }],
  ])('everywhere: %s', async (_, spec) => {
    await expect(attempt(create('edit', setsIn('shop'), setOf(spec)))).resolves.toBeDefined()
  })

  it('a set that has asked can be changed whatever the label says; one that has not may not begin', async () => {
    const label = (value: string | null) =>
      users.admin?.patch(
        namespaces,
        { name: 'labelled' },
        { type: 'merge', body: { metadata: { labels: { 'backup.example.com/memory': value } } } },
      )
    const kept = async (name: string, spec: object) =>
      users.admin?.create(backupPodSets, { ...setOf(spec), metadata: { name } }, { namespace: 'labelled' })
    await kept('asked', { checkpoint: {} })
    await kept('plain', {})
    await label(null)
    const change = (name: string, spec: object) =>
      attempt(patch('edit', `${setsIn('labelled')}/${name}`, { spec }))
    await vi.waitFor(() => expect(change('plain', { checkpoint: {} })).rejects.toThrow(/memory=allowed/), {
      interval: 200,
    })
    await expect(change('asked', { replicas: 3 })).resolves.toBeDefined()
    await label('allowed')
    // The policy sees the labels of a namespace a moment later, and the tests after this one rely on them.
    await vi.waitFor(() => expect(change('plain', { checkpoint: {} })).resolves.toBeDefined(), {
      interval: 200,
    })
  })
})

describe('D10.admission: the operator writes the sets of MigratingPods, and no others', () => {
  const template = { spec: { containers } }
  const migratingPod = (name: string) => ({
    ...{ apiVersion: apiVersionOf(migratingPods), kind: migratingPods.kind, metadata: { name } },
    spec: { template },
  })
  const path = '/apis/backup.example.com/v1alpha1/namespaces'

  it('with its template, its name, its label and its owner', async () => {
    const roams = await users.admin?.create(migratingPods, migratingPod('roams'), { namespace: 'labelled' })
    const uid = roams?.metadata.uid
    const owner = {
      ...{ apiVersion: apiVersionOf(migratingPods), kind: migratingPods.kind },
      controller: true,
    }
    const own = (over: { readonly metadata?: object; readonly spec?: object } = {}) => ({
      ...{ apiVersion: apiVersionOf(backupPodSets), kind: backupPodSets.kind },
      metadata: {
        name: 'roams',
        labels: { [migratingPodLabel]: 'roams' },
        ownerReferences: [{ ...owner, name: 'roams', uid }],
        ...over.metadata,
      },
      spec: { replicas: 1, checkpoint: {}, template, ...over.spec },
    })
    const made = (body: object, namespace = 'labelled') =>
      attempt(create('operator', setsIn(namespace), body))
    await vi.waitFor(() => expect(made(own())).resolves.toBeDefined(), { interval: 200 })
    const labels = { added: 'yes' }
    await expect(
      made(own({ spec: { template: { ...template, metadata: { labels } } } })),
    ).resolves.toBeDefined()
    const others = [
      own({ metadata: { labels: {} } }),
      own({ metadata: { ownerReferences: [] } }),
      own({ metadata: { ownerReferences: [{ ...owner, name: 'roams', uid: 'another' }] } }),
      own({ spec: { replicas: 2 } }),
      own({ spec: { cloneFrom: { pod: 'other' } } }),
      own({ spec: { template: { spec: { containers: [{ name: 'app', image: 'another' }] } } } }),
    ]
    for (const other of others)
      await expect(made(other), JSON.stringify(other)).rejects.toThrow(
        /'understudy-operator-(own-sets|migrating-pods)'/,
      )
    await expect(made({ ...own(), spec: { replicas: 1, template } }, 'shop')).rejects.toThrow(
      /understudy-operator-migrating-pods/,
    )
    const ofUser = setOf({ replicas: 1 })
    await users.admin?.create(backupPodSets, ofUser, { namespace: 'labelled' })
    const steal = { metadata: own().metadata, spec: { replicas: 0 } }
    await expect(attempt(patch('operator', `${setsIn('labelled')}/new`, steal))).rejects.toThrow(
      /understudy-operator/,
    )
  })

  it('and one that its MigratingPod has left behind can be changed', async () => {
    await users.admin?.create(namespaces, { metadata: { name: 'left', labels: memoryAllowed } })
    const metadata = { name: 'web', labels: { [migratingPodLabel]: 'web' } }
    await users.admin?.create(migratingPods, migratingPod('web'), { namespace: 'left' })
    const body = { ...setOf({ replicas: 1, checkpoint: {}, template }), metadata }
    await users.admin?.create(backupPodSets, body, { namespace: 'left' })
    await users.admin?.delete(migratingPods, { namespace: 'left', name: 'web' })
    const change = {
      ...patch('admin', `${setsIn('left')}/web`, { metadata: { labels: { note: 'x' } } }),
      type: 'merge',
    } as const
    await expect(attempt(change)).resolves.toBeDefined()
  })

  it('a user makes one only where memory is allowed', async () => {
    const made = (namespace: string) =>
      attempt(create('edit', `${path}/${namespace}/migratingpods`, migratingPod('other')))
    await expect(made('shop')).rejects.toThrow(/'understudy-memory'.*memory=allowed/)
    await expect(made('labelled')).resolves.toBeDefined()
  })
})

describe('D10.admission: a clone needs the right to run commands in its source', () => {
  const cloning = (name: string, pod: string) => ({
    ...setOf({ replicas: 1, checkpoint: {}, cloneFrom: { pod } }),
    metadata: { name },
  })
  const roaming = (name: string, spec: object) => ({
    ...{ apiVersion: apiVersionOf(migratingPods), kind: migratingPods.kind, metadata: { name } },
    spec: { template: { spec: { containers } }, ...spec },
  })
  const setPath = (name: string) => `${setsIn('labelled')}/${name}`
  const movingPath = '/apis/backup.example.com/v1alpha1/namespaces/labelled/migratingpods'
  const refusal = /'understudy-clones' .*reads all memory of pod secret.*create on its pods\/exec/

  beforeAll(async () => {
    const kubectl = (...args: string[]) =>
      run(cluster.kubectl, ['--kubeconfig', cluster.kubeconfigPath, '-n', 'labelled', ...args])
    const exec = ['--verb=create', '--resource=pods/exec', '--resource-name=mine']
    await kubectl('create', 'role', 'exec', ...exec)
    await kubectl('create', 'rolebinding', 'exec', '--role=exec', '--user=edith')
    await users.admin?.create(backupPodSets, cloning('own', 'mine'), { namespace: 'labelled' })
    await users.admin?.create(migratingPods, roaming('d', {}), { namespace: 'labelled' })
    const started = () => attempt(create('edit', setsIn('labelled'), cloning('mine', 'mine')))
    await vi.waitFor(() => expect(started()).resolves.toBeDefined(), { interval: 200 })
  })

  it('also when it is named later, or another template is to get the memory', async () => {
    await expect(attempt(create('edit', setsIn('labelled'), cloning('a', 'secret')))).rejects.toThrow(refusal)
    const spec = { cloneFrom: { pod: 'secret' } }
    await expect(attempt(patch('edit', setPath('own'), { spec }))).rejects.toThrow(refusal)
    await users.admin?.create(backupPodSets, cloning('theirs', 'secret'), { namespace: 'labelled' })
    const other = { spec: { template: { spec: { containers: [{ name: 'app', image: 'another' }] } } } }
    await expect(attempt(patch('edit', setPath('theirs'), other))).rejects.toThrow(refusal)
    for (const change of [{ metadata: { labels: { a: 'b' } } }, { spec: { cloneFrom: null } }])
      await expect(attempt(patch('edit', setPath('theirs'), change))).resolves.toBeDefined()
  })

  it('and for each change that could give its memory to more pods, also once the right is taken away', async () => {
    const tries = async (pod: string, path: string, spec: object) =>
      attempt(patch('edit', `${setPath(`of-${pod}`)}${path}`, { spec }))
    for (const pod of ['secret', 'mine'])
      await users.admin?.create(backupPodSets, cloning(`of-${pod}`, pod), { namespace: 'labelled' })
    const changes = [{ replicas: 3 }, { suspend: true }, { suspend: false, replicas: 2 }, { paused: true }]
    for (const spec of changes) {
      await expect(tries('secret', '', spec)).rejects.toThrow(refusal)
      await expect(tries('mine', '', spec)).resolves.toBeDefined()
    }
    // The policy sees a new set a moment later.
    const scaled = /'understudy-clones-scale' .*reads all memory of pod secret/
    await vi.waitFor(() => expect(tries('secret', '/scale', { replicas: 4 })).rejects.toThrow(scaled), {
      interval: 200,
    })
    await expect(tries('mine', '/scale', { replicas: 4 })).resolves.toBeDefined()
    await expect(tries('secret', '/scale', { replicas: 0 })).resolves.toBeDefined()
  })

  it('in a MigratingPod, too', async () => {
    const made = (name: string, spec: object) => attempt(create('edit', movingPath, roaming(name, spec)))
    await expect(made('b', { clonePod: 'secret' })).rejects.toThrow(refusal)
    await expect(made('c', { clonePod: 'mine' })).resolves.toBeDefined()
    await expect(made('f', {})).resolves.toBeDefined()
    const spec = { clonePod: 'secret' }
    await expect(attempt(patch('edit', `${movingPath}/d`, { spec }))).rejects.toThrow(refusal)
  })

  it('and the set of a MigratingPod has its source, and no other', async () => {
    const of = await users.admin?.create(migratingPods, roaming('e', { clonePod: 'secret' }), {
      namespace: 'labelled',
    })
    const owner = { apiVersion: apiVersionOf(migratingPods), kind: migratingPods.kind, controller: true }
    const made = (spec: object) =>
      attempt(
        create('operator', setsIn('labelled'), {
          ...setOf({ replicas: 1, hotBackups: 0, coldBackups: 0, checkpoint: {}, ...spec }),
          metadata: {
            ...{ name: 'e', labels: { [migratingPodLabel]: 'e' } },
            ownerReferences: [{ ...owner, name: 'e', uid: of?.metadata.uid }],
          },
        }),
      )
    for (const spec of [{}, { cloneFrom: { pod: 'mine' } }])
      await expect(made(spec)).rejects.toThrow(/understudy-operator-migrating-pods/)
    // The policy sees the new MigratingPod a moment later.
    await vi.waitFor(() => expect(made({ cloneFrom: { pod: 'secret' } })).resolves.toBeDefined(), {
      interval: 200,
    })
  })
})

describe('D10.admission: agents write to pods of their node and to our conditions, and nobody else to ours', () => {
  it.each(attacks)('refused: %s', async (_, each) => {
    await expect(attempt(each)).rejects.toThrow(/ValidatingAdmissionPolicy 'understudy-/)
  })

  it.each(allowed)('allowed: %s', async (_, each) => {
    await expect(attempt(each)).resolves.toBeDefined()
  })

  it('what is refused is refused by the policies and by nothing else', async () => {
    const bindings = '/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings'
    await users.admin?.request('DELETE', `${bindings}?labelSelector=app.kubernetes.io/part-of%3Dunderstudy`)
    const succeeds = ([, each]: readonly [string, Attempt]) =>
      attempt(each).then(
        () => [],
        (error: Error) => [error.message],
      )
    await vi.waitFor(async () => expect((await Promise.all(attacks.map(succeeds))).flat()).toEqual([]), {
      interval: 500,
    })
  })
})
