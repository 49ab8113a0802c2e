import { until } from '../../playground/until.ts'
import { labels } from '../../src/api/labels.ts'
import { type Pod, pods } from '../../src/kube/resources.ts'
import type { BenchContext } from '../bench.ts'
import { isLeaving, isReady, kindOf } from './state.ts'

/** Waits as long as pods of a gigabyte need. */
export const untilLarge = <T>(what: string, ask: () => Promise<T | undefined | false>): Promise<T> =>
  until(what, ask, { patienceMs: 180_000, pollMs: 50 })

export async function podsOf(
  { api, signal }: BenchContext,
  namespace: string,
  set: string,
): Promise<readonly Pod[]> {
  const { items } = await api.list(pods, { namespace, labelSelector: `${labels.set}=${set}` }, { signal })
  return items
}

/** @returns the first running pod of that kind that has an address; a primary also answers */
export const runningPod = (
  context: BenchContext,
  namespace: string,
  set: string,
  kind: string,
): Promise<Pod> =>
  untilLarge(`a ${kind} of ${set}`, async () =>
    (await podsOf(context, namespace, set)).find(
      pod =>
        kindOf(pod) === kind &&
        !isLeaving(pod) &&
        (kind !== 'primary' || isReady(pod)) &&
        pod.status?.containerStatuses?.every(({ state }) => state?.running !== undefined) === true &&
        pod.status.podIP !== undefined,
    ),
  )
