import { until } from '../../playground/until.ts'
import { labels } from '../../src/api/labels.ts'
import { type Pod, pods } from '../../src/kube/resources.ts'
import type { BenchContext } from '../bench.ts'

export async function podsOf(
  { api, signal }: BenchContext,
  namespace: string,
  set: string,
): Promise<readonly Pod[]> {
  const { items } = await api.list(pods, { namespace, labelSelector: `${labels.set}=${set}` }, { signal })
  return items
}

/** @returns the first pod of that kind that runs and has an address. */
export const runningPod = (
  context: BenchContext,
  namespace: string,
  set: string,
  kind: string,
): Promise<Pod> =>
  until(
    `a ${kind} of ${set}`,
    async () =>
      (await podsOf(context, namespace, set)).find(
        ({ metadata, status }) =>
          metadata.labels?.[labels.type] === kind &&
          metadata.deletionTimestamp === undefined &&
          status?.containerStatuses?.every(({ state }) => state?.running !== undefined) === true &&
          status.podIP !== undefined,
      ),
    { patienceMs: 180_000, pollMs: 50 },
  )
