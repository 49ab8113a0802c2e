/** API resources: the location of a kind in the API, tied to the TypeScript type of its objects. */
import type {
  EventsV1Event,
  V1ConfigMap,
  V1ControllerRevision,
  V1CustomResourceDefinition,
  V1DaemonSet,
  V1Deployment,
  V1EndpointSlice,
  V1Job,
  V1Lease,
  V1LimitRange,
  V1Namespace,
  V1Node,
  V1PersistentVolumeClaim,
  V1Pod,
  V1PodDisruptionBudget,
  V1ReplicaSet,
  V1Secret,
  V1Service,
  V1ServiceAccount,
  V1StatefulSet,
} from '@kubernetes/client-node'
import type { KubeObject, Stored } from './object.ts'

declare const objectType: unique symbol

/** One API resource. `group` is `''` for the core group; `plural` is the last part of its URL. */
export interface Resource<T extends KubeObject> {
  readonly group: string
  readonly version: string
  readonly plural: string
  readonly kind: string
  readonly namespaced: boolean
  /** Exists only for the type checker: ties the resource to the type of its objects. */
  readonly [objectType]?: T
}

export type ConfigMap = Stored<V1ConfigMap>
export type ControllerRevision = Stored<V1ControllerRevision>
export type CustomResourceDefinition = Stored<V1CustomResourceDefinition>
export type DaemonSet = Stored<V1DaemonSet>
export type Deployment = Stored<V1Deployment>
export type EndpointSlice = Stored<V1EndpointSlice>
/** An event of `events.k8s.io/v1`. */
export type Event = Stored<EventsV1Event>
export type Job = Stored<V1Job>
export type Lease = Stored<V1Lease>
export type LimitRange = Stored<V1LimitRange>
export type Namespace = Stored<V1Namespace>
export type Node = Stored<V1Node>
export type PersistentVolumeClaim = Stored<V1PersistentVolumeClaim>
export type Pod = Stored<V1Pod>
export type PodDisruptionBudget = Stored<V1PodDisruptionBudget>
export type ReplicaSet = Stored<V1ReplicaSet>
export type Secret = Stored<V1Secret>
export type Service = Stored<V1Service>
export type ServiceAccount = Stored<V1ServiceAccount>
export type StatefulSet = Stored<V1StatefulSet>

function resource<T extends KubeObject>(
  group: string,
  version: string,
  plural: string,
  kind: string,
  namespaced = true,
): Resource<T> {
  return Object.freeze({ group, version, plural, kind, namespaced })
}

export const configMaps = resource<ConfigMap>('', 'v1', 'configmaps', 'ConfigMap')
export const controllerRevisions = resource<ControllerRevision>(
  'apps',
  'v1',
  'controllerrevisions',
  'ControllerRevision',
)
export const customResourceDefinitions = resource<CustomResourceDefinition>(
  'apiextensions.k8s.io',
  'v1',
  'customresourcedefinitions',
  'CustomResourceDefinition',
  false,
)
export const daemonSets = resource<DaemonSet>('apps', 'v1', 'daemonsets', 'DaemonSet')
export const deployments = resource<Deployment>('apps', 'v1', 'deployments', 'Deployment')
export const endpointSlices = resource<EndpointSlice>(
  'discovery.k8s.io',
  'v1',
  'endpointslices',
  'EndpointSlice',
)
export const events = resource<Event>('events.k8s.io', 'v1', 'events', 'Event')
export const jobs = resource<Job>('batch', 'v1', 'jobs', 'Job')
export const leases = resource<Lease>('coordination.k8s.io', 'v1', 'leases', 'Lease')
export const limitRanges = resource<LimitRange>('', 'v1', 'limitranges', 'LimitRange')
export const namespaces = resource<Namespace>('', 'v1', 'namespaces', 'Namespace', false)
export const nodes = resource<Node>('', 'v1', 'nodes', 'Node', false)
export const persistentVolumeClaims = resource<PersistentVolumeClaim>(
  '',
  'v1',
  'persistentvolumeclaims',
  'PersistentVolumeClaim',
)
export const podDisruptionBudgets = resource<PodDisruptionBudget>(
  'policy',
  'v1',
  'poddisruptionbudgets',
  'PodDisruptionBudget',
)
export const pods = resource<Pod>('', 'v1', 'pods', 'Pod')
export const replicaSets = resource<ReplicaSet>('apps', 'v1', 'replicasets', 'ReplicaSet')
export const secrets = resource<Secret>('', 'v1', 'secrets', 'Secret')
export const services = resource<Service>('', 'v1', 'services', 'Service')
export const serviceAccounts = resource<ServiceAccount>('', 'v1', 'serviceaccounts', 'ServiceAccount')
export const statefulSets = resource<StatefulSet>('apps', 'v1', 'statefulsets', 'StatefulSet')

/** `apiVersion` of a resource's objects: `v1`, `apps/v1`. */
export function apiVersionOf({ group, version }: Resource<KubeObject>): string {
  return group === '' ? version : `${group}/${version}`
}

/** `plural.group` (or `plural` for the core group): the name used in metrics, logs and as a map key. */
export function resourceName({ group, plural }: Resource<KubeObject>): string {
  return group === '' ? plural : `${plural}.${group}`
}

/** The URL path of a collection (no name) or of one object, with an optional subresource. */
export function pathOf(
  resource: Resource<KubeObject>,
  where: { namespace?: string | undefined; name?: string | undefined; subresource?: string | undefined },
): string {
  const root =
    resource.group === '' ? `/api/${resource.version}` : `/apis/${resource.group}/${resource.version}`
  const namespace =
    resource.namespaced && where.namespace ? `/namespaces/${encodeURIComponent(where.namespace)}` : ''
  const name = where.name === undefined ? '' : `/${encodeURIComponent(where.name)}`
  const subresource = where.subresource === undefined ? '' : `/${where.subresource}`
  return `${root}${namespace}/${resource.plural}${name}${subresource}`
}
