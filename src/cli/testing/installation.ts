/** An installation as `doctor` reads it. */
import { KubeError } from '../../kube/errors.ts'
import type {
  CustomResourceDefinition,
  DaemonSet,
  Deployment,
  Lease,
  Node,
  Secret,
} from '../../kube/resources.ts'
import type { Installation, Part } from '../doctor/installation.ts'
import type { SchemaNode } from '../doctor/kinds.ts'
import { asked } from '../doctor/rights.ts'
import { meta, now, report, set } from './objects.ts'

export const places = { operatorNamespace: 'understudy-system', agentNamespace: 'understudy-agents' }
export const schema: SchemaNode = { properties: { spec: { properties: { replicas: {} } } } }
export const schemas = {
  backuppodsets: schema,
  nodereports: schema,
  migrations: schema,
  migratingpods: schema,
  podmigrationjobs: schema,
}
export const there = <T>(value: T): Part<T> => ({ ok: true, value })
export const missing: Part<never> = {
  ok: false,
  error: new KubeError('NotFound', 'get it: not found', { details: { name: 'it' } }),
}
export const forbidden: Part<never> = { ok: false, error: new KubeError('Forbidden', 'no') }

export const crd = (openAPIV3Schema: SchemaNode = schema): Part<CustomResourceDefinition> =>
  there({
    metadata: meta('backuppodsets'),
    spec: {
      ...{ group: 'backup.example.com', scope: 'Namespaced' },
      names: { kind: 'BackupPodSet', plural: 'backuppodsets' },
      versions: [{ name: 'v1alpha1', served: true, storage: true, schema: { openAPIV3Schema } }],
    },
    status: { conditions: [{ type: 'Established', status: 'True' }] },
  })
export const pods = (image: string) => ({
  selector: {},
  template: { spec: { containers: [{ name: 'understudy', image }] } },
})
export const deployment = (availableReplicas: number, tag = '0.1.0'): Part<Deployment> =>
  there({
    metadata: meta('understudy-operator'),
    spec: { replicas: 2, ...pods(`r/understudy/operator:${tag}`) },
    status: { availableReplicas },
  })
export const daemonSet = (numberReady: number, tag = '0.1.0'): Part<DaemonSet> =>
  there({
    metadata: meta('understudy-agent'),
    spec: pods(`r/understudy/agent:${tag}`),
    status: {
      ...{ currentNumberScheduled: 2, desiredNumberScheduled: 2, updatedNumberScheduled: 2 },
      ...{ numberMisscheduled: 0, numberReady },
    },
  })
export const lease = (renewTime: string, holderIdentity = 'op-1'): Part<Lease> =>
  there({ metadata: meta('operator'), spec: { holderIdentity, renewTime, leaseDurationSeconds: 2 } })
export const key = (length: number): Part<Secret> =>
  there({ metadata: meta('wake-key'), data: { key: Buffer.alloc(length).toString('base64') } })
export const node = (name: string, labelled = true, runtime = 'containerd://2.4.0'): Node => ({
  metadata: { ...meta(name), labels: labelled ? { 'backup.example.com/stage': 'ready' } : {} },
  status: {
    nodeInfo: {
      ...{ architecture: 'amd64', operatingSystem: 'linux', osImage: '', kernelVersion: '6.18' },
      ...{ bootID: '', machineID: '', systemUUID: '', kubeProxyVersion: '', kubeletVersion: 'v1.36.0' },
      containerRuntimeVersion: runtime,
    },
  },
})

/** An installation without faults. */
export const healthy: Installation = {
  version: '0.1.0',
  server: 'https://api:6443',
  kubernetes: 'v1.36.0',
  identity: there({ user: 'jane', now }),
  crds: {
    backuppodsets: crd(),
    nodereports: crd(),
    migrations: crd(),
    migratingpods: crd(),
    podmigrationjobs: missing,
  },
  operator: deployment(2),
  leadership: lease('2030-01-01T00:59:59.5Z'),
  wakeKey: key(32),
  agents: daemonSet(2),
  nodes: there([node('n1'), node('n2')]),
  reports: there([report('n1'), report('n2')]),
  sets: there([set()]),
  limitRanges: there([]),
  migrations: there([]),
  migratingPods: there([]),
  jobs: missing,
  primaries: there([]),
  budgets: there([]),
  rights: asked({ namespace: 'shop', ...places }).map(right => ({ ...right, allowed: true })),
}
