import { bySet, setsNamedBy } from '../../api/set-label.ts'
import { keyOf } from '../../kube/object.ts'
import type { EndpointSlice, Pod, Service } from '../../kube/resources.ts'
import type { Store } from '../../kube/store.ts'
import type { Endpoint, ServicesView, ServiceView, SliceView } from '../decide/endpoints-view.ts'

export const serviceIndexes: Readonly<Record<string, (object: Service) => readonly string[]>> = {
  [bySet]: setsNamedBy,
}
export const sliceIndexes: Readonly<Record<string, (object: EndpointSlice) => readonly string[]>> = {
  [bySet]: setsNamedBy,
}

export interface ServicesDeps {
  readonly services: Store<Service>
  readonly slices: Store<EndpointSlice>
}

/** Returns the Services and slices of a set; undefined if it has none and wants none. */
export function observeServices(
  set: { readonly namespace: string; readonly name: string; readonly uid: string; readonly service: unknown },
  pods: Iterable<Pod>,
  deps: ServicesDeps,
): ServicesView | undefined {
  const key = keyOf({ metadata: set })
  const isOurs = ({ metadata }: Service | EndpointSlice) =>
    metadata.deletionTimestamp === undefined &&
    metadata.ownerReferences?.some(({ uid }) => uid === set.uid) === true
  const services = deps.services.by(bySet, key).filter(isOurs).map(serviceView)
  const slices = deps.slices.by(bySet, key).filter(isOurs).map(sliceView)
  if (set.service === undefined && services.length + slices.length === 0) return undefined
  const addresses = new Map<string, string>()
  for (const { metadata, status } of pods) if (status?.podIP) addresses.set(metadata.uid, status.podIP)
  return { services: services.sort(byName), slices: slices.sort(byName), addresses }
}

const byName = (a: { readonly name: string }, b: { readonly name: string }) => (a.name < b.name ? -1 : 1)

const serviceView = ({ metadata, spec }: Service): ServiceView => ({
  name: metadata.name,
  uid: metadata.uid,
  resourceVersion: metadata.resourceVersion,
  type: spec?.type ?? 'ClusterIP',
  ports: (spec?.ports ?? []).map(({ name, port, targetPort, protocol }) => ({
    name,
    port,
    targetPort: Number(targetPort ?? port),
    protocol: protocol ?? 'TCP',
  })),
})

export function sliceView({ metadata, endpoints, ports, addressType }: EndpointSlice): SliceView {
  return {
    name: metadata.name,
    service: metadata.labels?.['kubernetes.io/service-name'] ?? '',
    resourceVersion: metadata.resourceVersion,
    family: addressType === 'IPv6' ? 'IPv6' : 'IPv4',
    endpoints: (endpoints ?? []).flatMap((endpoint): Endpoint[] => {
      const slot = /^slot-(\d{1,9})$/.exec(endpoint.hostname ?? '')?.[1]
      const [ip] = endpoint.addresses
      if (slot === undefined || ip === undefined) return []
      const { name = '', uid = '' } = endpoint.targetRef ?? {}
      return [{ slot: Number(slot), ip, pod: name, uid, node: endpoint.nodeName }]
    }),
    ports: (ports ?? []).map(({ name, port, protocol }) => ({
      name: name || undefined,
      targetPort: port ?? 0,
      protocol: protocol ?? 'TCP',
    })),
  }
}
