import { labels } from '../../api/labels.ts'
import { slotLeaseName } from '../../api/numbered-slot.ts'
import { isKubeError } from '../../kube/errors.ts'
import { endpointSlices, services } from '../../kube/resources.ts'
import type { EndpointPort } from '../act/context.ts'
import type { SlotActionOf } from '../decide/actions.ts'
import type { Endpoint, ServicePort } from '../decide/endpoints-view.ts'
import { controllerReference } from '../decide/owner.ts'
import { sliceView } from './observe.ts'
import { familyOf, sliceName } from './shape.ts'

type Serve = SlotActionOf<'applyService'>
type Publish = SlotActionOf<'applyEndpoints'>
type Withdraw = SlotActionOf<'deleteService'>

const managedBy = 'endpointslice.kubernetes.io/managed-by'
const serviceName = 'kubernetes.io/service-name'

/** Creates or changes a Service without selector: only we manage its endpoints. @throws KubeError. */
export async function serve(
  context: EndpointPort,
  { service, serviceType, ports, slot, version }: Serve,
): Promise<void> {
  const { urgentApi, owner, signal } = context
  const ref = { namespace: owner.namespace, name: service }
  const metadata = {
    name: service,
    labels: { [labels.set]: owner.name, ...(slot === undefined ? {} : { [labels.slot]: String(slot) }) },
    ownerReferences: [controllerReference(owner)],
  }
  // The API server keeps the node ports of an existing Service, and releases them with the type.
  const spec = { type: serviceType, ports: ports.map(portBody) }
  if (version === undefined)
    await urgentApi.create(services, { metadata, spec }, { namespace: owner.namespace, signal })
  else {
    const body = { metadata: { resourceVersion: version }, spec }
    await urgentApi.patch(services, ref, { type: 'merge', body }, { signal })
  }
}

const portBody = ({ name, port, targetPort, protocol }: ServicePort) => ({
  ...(name === undefined ? {} : { name }),
  port,
  targetPort,
  protocol,
})

/** Replaces all endpoints of a slice in one write. @throws KubeError. */
export async function publish(context: EndpointPort, action: Publish): Promise<void> {
  const { urgentApi, owner, signal } = context
  const ref = { namespace: owner.namespace, name: action.slice }
  const body = sliceBody(context, action)
  if (action.version === undefined)
    await urgentApi.create(endpointSlices, body, { namespace: owner.namespace, signal })
  else {
    const metadata = { ...body.metadata, resourceVersion: action.version }
    await urgentApi.replace(endpointSlices, ref, { ...body, metadata }, { signal })
  }
}

function sliceBody(
  { owner }: Pick<EndpointPort, 'owner'>,
  {
    slice,
    service,
    family,
    ports,
    endpoints,
  }: Omit<Publish, 'type' | 'version' | 'ports'> & {
    readonly ports: readonly Omit<ServicePort, 'port'>[]
  },
) {
  return {
    apiVersion: 'discovery.k8s.io/v1',
    kind: endpointSlices.kind,
    metadata: {
      name: slice,
      namespace: owner.namespace,
      labels: {
        [labels.set]: owner.name,
        [serviceName]: service,
        [managedBy]: 'understudy.backup.example.com',
      },
      ownerReferences: [controllerReference(owner)],
    },
    addressType: family,
    ports: ports.map(({ name, targetPort, protocol }) => ({ name: name ?? '', port: targetPort, protocol })),
    endpoints: endpoints.map(({ slot, ip, pod, uid, node }) => ({
      addresses: [ip],
      conditions: { ready: true, serving: true, terminating: false },
      // Records the slot for us: the address of a deleted pod would not tell.
      hostname: `slot-${slot}`,
      ...(node === undefined ? {} : { nodeName: node }),
      targetRef: { kind: 'Pod', namespace: owner.namespace, name: pod, uid },
    })),
  }
}

/** Deletes a Service or slice that is no longer wanted; success if it no longer exists. */
export async function withdraw(
  context: EndpointPort,
  { what, name, resourceVersion }: Withdraw,
): Promise<void> {
  const { urgentApi, owner, signal } = context
  const ref = { namespace: owner.namespace, name }
  try {
    if (what === 'service') await urgentApi.delete(services, ref, { resourceVersion }, { signal })
    else await urgentApi.delete(endpointSlices, ref, { resourceVersion }, { signal })
  } catch (error) {
    if (!isKubeError(error, 'NotFound')) throw error
  }
}

const attempts = 5

/**
 * Replaces a slot's endpoint by a new pod in every Service that leads to the slot: one PUT for each slice, in parallel.
 * A slice that does not exist yet is left to the pass that creates it. @throws KubeError.
 */
export async function switchOver(context: EndpointPort, endpoint: Endpoint): Promise<void> {
  const { owner, service } = context
  if (service === undefined) return
  const family = familyOf(endpoint.ip)
  const leadThere = [
    ...(service.name === undefined ? [] : [service.name]),
    ...(service.perSlot ? [slotLeaseName(owner.name, endpoint.slot)] : []),
  ]
  await Promise.all(
    leadThere.map(each => switchSlice(context, sliceName(each, endpoint.slot, family), endpoint)),
  )
}

async function switchSlice(context: EndpointPort, slice: string, endpoint: Endpoint): Promise<void> {
  const { urgentApi, owner, signal } = context
  let current = context.sliceOf(slice)
  for (let attempt = 1; current !== undefined; attempt += 1) {
    const { service, family, ports, endpoints } = sliceView(current)
    const others = endpoints.filter(({ slot }) => slot !== endpoint.slot)
    const version = current.metadata.resourceVersion
    const body = sliceBody(context, {
      slice,
      service,
      family,
      ports,
      endpoints: [...others, endpoint].sort((a, b) => a.slot - b.slot),
    })
    try {
      const metadata = { ...body.metadata, resourceVersion: version }
      const ref = { namespace: owner.namespace, name: slice }
      await urgentApi.replace(endpointSlices, ref, { ...body, metadata }, { signal })
      return
    } catch (error) {
      // After a conflict, read again: another slot in this slice has just been switched, and its change must stay.
      if (isKubeError(error, 'NotFound')) return
      if (!isKubeError(error, 'Conflict') || attempt === attempts) throw error
      current = await urgentApi.get(endpointSlices, { namespace: owner.namespace, name: slice }, { signal })
    }
  }
}
