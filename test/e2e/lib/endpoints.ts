import { endpointSlices } from '../../../src/kube/resources.ts'
import type { World } from './world.ts'

/** Returns the names of the pods to which a Service would send traffic, in order. */
export async function discovery({ api, namespace }: World, service: string): Promise<string[]> {
  const labelSelector = `kubernetes.io/service-name=${service}`
  const { items } = await api.list(endpointSlices, { namespace, labelSelector })
  return items
    .flatMap(slice => slice.endpoints ?? [])
    .filter(endpoint => endpoint.conditions?.ready)
    .map(endpoint => endpoint.targetRef?.name ?? '')
    .sort()
}
