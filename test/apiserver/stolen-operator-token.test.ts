// Long because it is a list of the requests that a thief could make.
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { run } from '../../build/run.ts'
import { type ControlPlane, startControlPlane } from '../../playground/control-plane.ts'
import { backupPodSets } from '../../src/api/backuppodset.ts'
import { type Api, createApi } from '../../src/kube/api.ts'
import { loadConnection } from '../../src/kube/connection.ts'
import { project } from '../unit/deploy/manifests.ts'
import { apiWithToken } from './lib/bound-token.ts'

// Own API server with all of deploy/ installed: the policies affect every request to it.
let cluster: ControlPlane
let thief: Api
let scratch = ''

const set = (uid: string) => ({
  ...{ apiVersion: 'backup.example.com/v1alpha1', kind: backupPodSets.kind },
  ...{ name: 'web', uid, controller: true },
})
const owned = { labels: { 'backup.example.com/backuppodset': 'web' }, ownerReferences: [set('some-uid')] }
const app = { name: 'app', image: 'app' }
const pod = (metadata: object, spec: object = {}) => ({
  ...{ apiVersion: 'v1', kind: 'Pod', metadata: { name: 'new', ...metadata } },
  spec: { containers: [app], ...spec },
})
const web = {
  ...{ apiVersion: 'backup.example.com/v1alpha1', kind: backupPodSets.kind, metadata: { name: 'web' } },
  spec: { replicas: 1, template: { spec: { containers: [app] } } },
}
const privileged = { containers: [{ ...app, securityContext: { privileged: true } }] }
const service = (metadata: object, spec: object = {}) => ({
  ...{ apiVersion: 'v1', kind: 'Service', metadata: { name: 'web', ...metadata } },
  spec: { ports: [{ port: 80 }], ...spec },
})
const lease = (metadata: object) => ({
  ...{ apiVersion: 'coordination.k8s.io/v1', kind: 'Lease', metadata: { name: 'web-0', ...metadata } },
  spec: { holderIdentity: 'somebody' },
})
const slice = (metadata: object) => ({
  ...{ apiVersion: 'discovery.k8s.io/v1', kind: 'EndpointSlice', metadata: { name: 'web-x', ...metadata } },
  ...{ addressType: 'IPv4', endpoints: [{ addresses: ['10.6.6.6'] }] },
})
const revision = (metadata: object) => ({
  ...{ apiVersion: 'apps/v1', kind: 'ControllerRevision', metadata: { name: 'web-1', ...metadata } },
  ...{ revision: 1, data: {} },
})
const budget = (metadata: object, selector: object = { matchLabels: owned.labels }) => ({
  ...{ apiVersion: 'policy/v1', kind: 'PodDisruptionBudget', metadata: { name: 'new', ...metadata } },
  spec: { minAvailable: 9, selector },
})
const migration = (metadata: object) => ({
  ...{ apiVersion: 'backup.example.com/v1alpha1', kind: 'Migration', metadata: { name: 'new', ...metadata } },
  spec: { source: { name: 'of-set' }, priority: 'SystemCritical' },
})
const secret = (name: string, type: string, annotations: object = {}) => ({
  ...{ apiVersion: 'v1', kind: 'Secret', metadata: { name, annotations }, type },
})
const event = (controller: string, kind: string) => ({
  ...{ apiVersion: 'events.k8s.io/v1', kind: 'Event', metadata: { name: 'new' } },
  ...{ reportingController: controller, reportingInstance: 'x', action: 'Convert', note: '' },
  ...{ eventTime: '2026-01-01T00:00:00.000000Z', type: 'Normal', reason: 'FailedOver' },
  regarding: { apiVersion: 'v1', kind, namespace: 'shop', name: 'web' },
})

beforeAll(async () => {
  scratch = await mkdtemp(join(tmpdir(), 'understudy-stolen-'))
  cluster = await startControlPlane()
  await admin('apply', '-k', join(project, 'deploy'))
  await vi.waitFor(() => admin('get', 'bps', '-A'), { interval: 100 })
  for (const name of ['shop', 'open', 'mighty', 'outside']) await admin('create', 'namespace', name)
  await admin('label', 'namespace', 'open', 'pod-security.kubernetes.io/enforce=privileged')
  await admin('label', 'namespace', 'outside', 'backup.example.com/external-services=allowed')
  const objects: readonly (readonly [string, { readonly metadata: object }])[] = [
    ['shop', pod({ name: 'of-set', ...owned, labels: { ...owned.labels, app: 'web' } })],
    ['shop', pod({ name: 'unlabelled', ownerReferences: owned.ownerReferences })],
    ['shop', pod({ name: 'orphan', labels: owned.labels })],
    ['shop', pod({ name: 'of-others', labels: { app: 'db' } })],
    ['shop', service({ name: 'of-set', ...owned })],
    ['shop', service({ name: 'of-others' })],
    ['outside', service({ name: 'of-set', ...owned }, { type: 'NodePort' })],
    ['kube-system', service({ name: 'kube-dns' }, { selector: { 'k8s-app': 'kube-dns' } })],
    ['shop', lease({ name: 'of-set', ...owned })],
    ['shop', lease({ name: 'unlabelled', ownerReferences: owned.ownerReferences })],
    ['kube-system', lease({ name: 'kube-scheduler' })],
    ['kube-node-lease', lease({ name: 'n1' })],
    ['understudy-system', lease({ name: 'understudy-operator' })],
    ['shop', slice({ name: 'of-set', ...owned })],
    ['kube-system', slice({ name: 'kube-dns-x', labels: { 'kubernetes.io/service-name': 'kube-dns' } })],
    ['shop', revision({ name: 'of-set', ...owned })],
    ['shop', revision({ name: 'of-others' })],
    ['shop', budget({ name: 'of-set', ...owned })],
    ['shop', budget({ name: 'of-others' })],
    ['shop', { ...event('kubelet', 'Pod'), metadata: { name: 'of-others' } }],
  ]
  for (const namespace of ['shop', 'open'])
    await vi.waitFor(async () => admin('apply', '-n', namespace, '-f', await file(JSON.stringify(web))), {
      interval: 200,
    })
  const items = objects.map(([namespace, object]) => ({
    ...object,
    metadata: { ...object.metadata, namespace },
  }))
  await admin('create', '-f', await file(JSON.stringify({ apiVersion: 'v1', kind: 'List', items })))
  const api = createApi({ connection: await loadConnection({ kubeconfig: cluster.kubeconfigPath }) })
  thief = await apiWithToken(cluster, api, {
    namespace: 'understudy-system',
    serviceAccount: 'understudy-operator',
  })
  await api.close()
  // The server applies a new policy only after a moment.
  for (const attack of attacks)
    await vi.waitFor(() => expect(attempt(attack[1])).rejects.toThrow(), { interval: 200 })
}, 180_000)
afterAll(async () => {
  await thief?.close()
  await cluster?.stop()
  await rm(scratch, { recursive: true, force: true })
})

const admin = (...args: string[]): Promise<string> =>
  run(cluster.kubectl, ['--kubeconfig', cluster.kubeconfigPath, ...args])

let files = 0
async function file(content: string): Promise<string> {
  files += 1
  const path = join(scratch, `${files}.json`)
  await writeFile(path, content)
  return path
}

interface Attempt {
  readonly method: 'POST' | 'PATCH' | 'DELETE'
  readonly path: string
  readonly body?: object
}

/** Dry run: the server does everything except store the object. */
async function attempt({ method, path, body }: Attempt): Promise<unknown> {
  const answer = await thief.request(method, path, {
    query: { dryRun: 'All' },
    ...(body && { body }),
    ...(method === 'PATCH' && { contentType: 'application/merge-patch+json' }),
  })
  if (answer.status >= 300) throw new Error(JSON.stringify(answer.body))
  return answer.body
}

const groups = {
  ...{ pods: '/api/v1', services: '/api/v1', secrets: '/api/v1', leases: '/apis/coordination.k8s.io/v1' },
  ...{ endpointslices: '/apis/discovery.k8s.io/v1', controllerrevisions: '/apis/apps/v1' },
  ...{ events: '/apis/events.k8s.io/v1', poddisruptionbudgets: '/apis/policy/v1' },
  migrations: '/apis/backup.example.com/v1alpha1',
} as const
type Plural = keyof typeof groups

const pathOf = (plural: Plural, namespace: string, name?: string): string =>
  `${groups[plural]}/namespaces/${namespace}/${plural}${name ? `/${name}` : ''}`
const create = (object: { readonly kind: string }, namespace = 'shop'): Attempt => ({
  method: 'POST',
  path: pathOf(`${object.kind.toLowerCase()}s` as Plural, namespace),
  body: object,
})
const at = (path: `${Plural}/${string}`, namespace: string): string => {
  const [plural, name] = path.split('/')
  return pathOf(plural as Plural, namespace, name)
}
const remove = (path: `${Plural}/${string}`, namespace = 'shop'): Attempt => ({
  ...{ method: 'DELETE', path: at(path, namespace) },
})
const patch = (path: `${Plural}/${string}`, body: object, namespace = 'shop'): Attempt => ({
  ...{ method: 'PATCH', path: at(path, namespace), body },
})

/** RBAC allows each of these to the token, so only the policies can refuse it. */
const attacks: readonly (readonly [string, Attempt])[] = [
  ['a privileged pod beside the DNS of the cluster', create(pod({}, privileged), 'kube-system')],
  ['a privileged pod of a set beside the DNS of the cluster', create(pod(owned, privileged), 'kube-system')],
  ['a privileged pod of a set beside the agents', create(pod(owned, privileged), 'understudy-agents')],
  ['a pod of a set beside the agents', create(pod(owned), 'understudy-agents')],
  ['a pod of no set', create(pod({}))],
  [
    'a pod of an invented set with the accounts and Secrets of a namespace that has none',
    create(pod(owned), 'mighty'),
  ],
  ['a pod with the label of a set and no owner', create(pod({ labels: owned.labels }))],
  [
    'a pod with an owner that is no set',
    create(pod({ ...owned, ownerReferences: [{ ...set('u'), kind: 'ReplicaSet', apiVersion: 'apps/v1' }] })),
  ],
  ['a pod of a set with privileges', create(pod(owned, privileged))],
  [
    'a pod of a set with a privileged init container',
    create(pod(owned, { initContainers: privileged.containers.map(each => ({ ...each, name: 'init' })) })),
  ],
  [
    'a pod of a set with the root of its node',
    create(pod(owned, { volumes: [{ name: 'v', hostPath: { path: '/' } }] })),
  ],
  ['a pod of a set among the processes of its node', create(pod(owned, { hostPID: true }))],
  ['a pod of a set on the network of its node', create(pod(owned, { hostNetwork: true }))],
  [
    'a pod of a set that may trace',
    create(
      pod(owned, { containers: [{ ...app, securityContext: { capabilities: { add: ['SYS_PTRACE'] } } }] }),
    ),
  ],
  [
    'another image in a pod of others',
    patch('pods/of-others', { spec: { containers: [{ ...app, image: 'evil' }] } }),
  ],
  [
    'another image in a pod of a set',
    patch('pods/of-set', { spec: { containers: [{ ...app, image: 'evil' }] } }),
  ],
  [
    'the label of a set on a pod of others',
    patch('pods/of-others', { metadata: { labels: owned.labels, ownerReferences: owned.ownerReferences } }),
  ],
  ['another label of a pod of a set', patch('pods/of-set', { metadata: { labels: { app: 'db' } } })],
  [
    'an annotation that others go by',
    patch('pods/of-set', { metadata: { annotations: { 'cni.example/network': 'admin' } } }),
  ],
  ['a finalizer', patch('pods/of-set', { metadata: { finalizers: ['a.example/b'] } })],
  ['the end of a pod of others', remove('pods/of-others')],
  ['the end of a pod that nothing owns', remove('pods/orphan')],
  [
    'another selector of the DNS of the cluster',
    patch('services/kube-dns', { spec: { selector: { app: 'evil' } } }, 'kube-system'),
  ],
  [
    'the label of a set on the DNS of the cluster',
    patch('services/kube-dns', { metadata: { labels: owned.labels } }, 'kube-system'),
  ],
  ['the end of a Service of others', remove('services/of-others')],
  ['a Service of no set', create(service({}))],
  ['a Service of a set that takes an address over', create(service(owned, { externalIPs: ['1.1.1.1'] }))],
  [
    'a Service of a set that takes pods of others',
    patch('services/of-set', { spec: { selector: { app: 'db' } } }),
  ],
  ['a Service of a set on a port of all nodes', patch('services/of-set', { spec: { type: 'NodePort' } })],
  ['D19.external: a Service of a set with a load balancer', create(service(owned, { type: 'LoadBalancer' }))],
  [
    'a Service of a set that leads to another name',
    create(service(owned, { type: 'ExternalName', externalName: 'evil.example' }), 'outside'),
  ],
  [
    'a slice of the DNS of the cluster',
    create(slice({ labels: { ...owned.labels, 'kubernetes.io/service-name': 'kube-dns' } }), 'kube-system'),
  ],
  ['a slice of no set', create(slice({ labels: { 'kubernetes.io/service-name': 'of-others' } }))],
  ['the end of a slice of the DNS of the cluster', remove('endpointslices/kube-dns-x', 'kube-system')],
  [
    'the leadership of the scheduler',
    patch('leases/kube-scheduler', { spec: { holderIdentity: 'me' } }, 'kube-system'),
  ],
  [
    'the leadership of the scheduler, with a label',
    patch('leases/kube-scheduler', { metadata: { labels: owned.labels } }, 'kube-system'),
  ],
  ['the end of the heartbeat of a node', remove('leases/n1', 'kube-node-lease')],
  ['a Lease of no set', create(lease({ labels: {} }))],
  ['a Lease of another name beside its own', create(lease({ ...owned, name: 'other' }), 'understudy-system')],
  ['the end of an earlier template of others', remove('controllerrevisions/of-others')],
  ['an earlier template of others', create(revision({}))],
  [
    'a token of its own account',
    create(
      secret('understudy-wake-key', 'kubernetes.io/service-account-token', {
        'kubernetes.io/service-account.name': 'understudy-operator',
      }),
      'understudy-system',
    ),
  ],
  [
    'a token of the agents',
    create(
      secret('understudy-generations-key', 'kubernetes.io/service-account-token', {
        'kubernetes.io/service-account.name': 'understudy-agent',
      }),
      'understudy-agents',
    ),
  ],
  ['a Secret of another name', create(secret('other', 'Opaque'), 'understudy-agents')],
  ['a disruption budget of no set', create(budget({}))],
  [
    'a disruption budget that keeps pods of others',
    create(budget({ labels: owned.labels }, { matchLabels: { app: 'db' } })),
  ],
  ['a disruption budget of the cluster', create(budget(owned), 'kube-system')],
  ['the end of a disruption budget of others', remove('poddisruptionbudgets/of-others')],
  ['a Migration of no set', create(migration({}))],
  ['an event of the kubelet', create(event('kubelet', 'Pod'))],
  ['an event about a pod of others', create(event('understudy-operator', 'Pod'))],
]

const allowed: readonly (readonly [string, Attempt])[] = [
  ['a pod of a set', create(pod(owned))],
  [
    'a pod of a set with harmless capabilities',
    create(
      pod(owned, {
        containers: [{ ...app, securityContext: { capabilities: { add: ['NET_BIND_SERVICE'] } } }],
      }),
    ),
  ],
  [
    'a privileged pod of a set where the namespace says that it may be',
    create(pod(owned, privileged), 'open'),
  ],
  [
    'another kind of a pod of a set',
    patch('pods/of-set', {
      metadata: {
        labels: { type: 'primary', 'backup.example.com/slot': '0' },
        annotations: { 'backup.example.com/epoch': '2' },
      },
    }),
  ],
  [
    'the release of a pod that lost its label',
    patch('pods/unlabelled', { metadata: { ownerReferences: null } }),
  ],
  [
    'the adoption of an orphan',
    patch('pods/orphan', { metadata: { ownerReferences: owned.ownerReferences } }),
  ],
  ['the end of a pod of a set', remove('pods/of-set')],
  ['a Service of a set', create(service(owned))],
  ['other ports of a Service of a set', patch('services/of-set', { spec: { ports: [{ port: 81 }] } })],
  [
    'D19.external: a port of all nodes, where the namespace allows it',
    create(service(owned, { type: 'NodePort' }), 'outside'),
  ],
  [
    'a load balancer, where the namespace allows it',
    create(service(owned, { type: 'LoadBalancer' }), 'outside'),
  ],
  [
    'other ports of a Service on all nodes',
    patch('services/of-set', { spec: { type: 'NodePort', ports: [{ port: 81 }] } }, 'outside'),
  ],
  ['the end of a Service of a set', remove('services/of-set')],
  ['a slice of a set', create(slice(owned))],
  ['the end of a slice of a set', remove('endpointslices/of-set')],
  ['a Lease of a slot', create(lease(owned))],
  [
    'a Lease of a slot that lost its label',
    patch('leases/unlabelled', { metadata: { labels: owned.labels } }),
  ],
  ['another holder of a slot', patch('leases/of-set', { spec: { holderIdentity: 'next' } })],
  ['the end of a slot', remove('leases/of-set')],
  ['an earlier template of a set', create(revision(owned))],
  ['the end of an earlier template of a set', remove('controllerrevisions/of-set')],
  ['a disruption budget of a set', create(budget(owned))],
  ['the end of a disruption budget of a set', remove('poddisruptionbudgets/of-set')],
  ['a Migration of a set', create(migration(owned))],
  ['its own key', create(secret('understudy-wake-key', 'Opaque'), 'understudy-system')],
  ["the agents' key", create(secret('understudy-generations-key', 'Opaque'), 'understudy-agents')],
  ['an event about a set', create(event('understudy-operator', 'BackupPodSet'))],
]

describe('D10.operator: a stolen token of the operator is worth the objects of sets and no more', () => {
  it.each(attacks)('refused: %s', async (_, each) => {
    await expect(attempt(each)).rejects.toThrow(/ValidatingAdmissionPolicy 'understudy-(operator|marks)/)
  })

  it.each(allowed)('allowed: %s', async (_, each) => {
    await expect(attempt(each)).resolves.toBeDefined()
  })

  it('what is refused is refused by the policies and by nothing else', async () => {
    await admin(
      ...['delete', 'validatingadmissionpolicybindings', '-l', 'app.kubernetes.io/part-of=understudy'],
    )
    const refusalOf = ([title, each]: readonly [string, Attempt]) =>
      attempt(each).then(
        () => [],
        (error: Error) => [`${title}: ${error.message}`],
      )
    await vi.waitFor(async () => expect((await Promise.all(attacks.map(refusalOf))).flat()).toEqual([]), {
      interval: 500,
    })
  })
})
