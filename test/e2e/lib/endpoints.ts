import { type EndpointSlice, endpointSlices } from '../../../src/kube/resources.ts'
import type { World } from './world.ts'

/** Returns the names of the pods to which a Service would send traffic, in order. */
export async function discovery({ api, namespace }: World, service: string): Promise<string[]> {
  const labelSelector = `kubernetes.io/service-name=${service}`
  const { items } = await api.list(endpointSlices, { namespace, labelSelector })
  return items.flatMap(readyIn).sort()
}

const readyIn = ({ endpoints }: EndpointSlice): string[] =>
  (endpoints ?? [])
    .filter(({ conditions }) => conditions?.ready)
    .map(({ targetRef }) => targetRef?.name ?? '')

/** Notes the pods of each version of the Service's only slice until the signal fires. The list grows meanwhile. */
export async function followEndpoints({ api, namespace }: World, service: string, signal: AbortSignal) {
  const labelSelector = `kubernetes.io/service-name=${service}`
  const { metadata, items } = await api.list(endpointSlices, { namespace, labelSelector })
  const { resourceVersion } = metadata
  const versions = items.map(readyIn)
  const follow = async () => {
    for await (const event of api.watch(
      endpointSlices,
      { namespace, labelSelector, resourceVersion },
      { signal },
    ))
      if (event.type !== 'BOOKMARK') versions.push(readyIn(event.object))
  }
  const followed = follow().catch((error: unknown) => {
    if (!signal.aborted) throw error
  })
  return { versions, followed }
}
