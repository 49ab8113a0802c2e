/** Checks which pods the Service reaches, and which pods it has reached. */
import { setTimeout as sleep } from 'node:timers/promises'
import { endpointSlices } from '../src/kube/resources.ts'
import type { Cast } from './cast.ts'
import { staying } from './picture.ts'
import type { Stage } from './stage.ts'
import { userAgent } from './traffic.ts'

/** How long endpoints may lag behind the pods, ms. */
const lagMs = 10_000

/** Checks that the Service's ready addresses are exactly those of the ready primaries. */
export async function serviceDeviations(
  stage: Stage,
  service: string,
  cast: Cast,
  signal: AbortSignal,
): Promise<string[]> {
  const { api, namespace } = stage
  const deadline = performance.now() + lagMs
  for (;;) {
    const { items } = await api.list(
      endpointSlices,
      { namespace, labelSelector: `kubernetes.io/service-name=${service}` },
      { signal },
    )
    const reached = items
      .flatMap(({ endpoints }) => endpoints ?? [])
      .filter(({ conditions }) => conditions?.ready !== false)
      .flatMap(({ addresses }) => addresses)
      .sort()
    const primaries = staying(cast.rows())
      .filter(({ kind }) => kind === 'primary')
      .map(({ ip }) => ip ?? 'none')
      .sort()
    if (reached.join() === primaries.join()) return []
    if (performance.now() > deadline)
      return [`the Service reaches ${reached.join(', ')} instead of ${primaries.join(', ')}`]
    await sleep(200, undefined, { signal })
  }
}

/** Finds requests of the demo's client in the access logs of hot backups; there must be none. */
export async function strayRequests(stage: Stage, cast: Cast, signal: AbortSignal): Promise<string[]> {
  const wrong: string[] = []
  for (const { name, kind } of staying(cast.rows())) {
    if (kind !== 'hotbackup') continue
    const path = `/api/v1/namespaces/${stage.namespace}/pods/${name}/log`
    const { body } = await stage.api.request('GET', path, { query: { container: 'nginx' }, signal })
    const requests = String(body)
      .split('\n')
      .filter(line => line.includes(userAgent)).length
    if (requests > 0) wrong.push(`hot backup ${name} got ${requests} requests`)
  }
  return wrong
}
