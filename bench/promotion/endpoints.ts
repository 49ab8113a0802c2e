import type { EndpointSlice } from '../../src/kube/resources.ts'
import type { Stamped } from '../observe/recording.ts'

/** Returns the Unix ms of the first change after which a Service's slices list an address as ready. */
export function readyInSliceAt(
  events: readonly Stamped<EndpointSlice>[],
  address: string,
): number | undefined {
  return events.find(({ object }) =>
    object.endpoints?.some(
      ({ addresses, conditions }) => addresses.includes(address) && conditions?.ready !== false,
    ),
  )?.at
}
