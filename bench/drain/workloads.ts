import { type BackupPodSet, backupPodSets } from '../../src/api/backuppodset.ts'
import { labels } from '../../src/api/labels.ts'
import { type MigratingPod, migratingPods } from '../../src/api/migrating-pod.ts'
import { isKubeError } from '../../src/kube/errors.ts'
import { apiVersionOf, type Pod, pods, services } from '../../src/kube/resources.ts'
import { type BenchContext, demand } from '../bench.ts'
import { counterTemplate, primariesOf, setOf } from '../objects.ts'
import { isReady, kindOf } from '../observe/state.ts'

/** One counter, behind a Service of its own. */
export interface Workload {
  readonly name: string
  readonly kind: 'MigratingPod' | 'set'
  readonly host: string
}

export const port = 8080
const interval = '1s'

/** Creates the counters, each with a Service. */
export async function createWorkloads(
  context: BenchContext,
  namespace: string,
  { moving, sets }: { readonly moving: number; readonly sets: number },
): Promise<readonly Workload[]> {
  const { api, signal } = context
  const names = (prefix: string, count: number) => Array.from({ length: count }, (_, i) => `${prefix}-${i}`)
  const templateOf = (name: string) => counterTemplate(context.images.counter, name)
  const made: Workload[] = []
  for (const name of names('moving', moving)) {
    const about = { apiVersion: apiVersionOf(migratingPods), kind: migratingPods.kind, metadata: { name } }
    const spec = { checkpoint: { interval }, template: templateOf(name) }
    await api.create(migratingPods, { ...about, spec }, { namespace, signal })
    made.push({ name, kind: 'MigratingPod', host: await serviceOf(context, namespace, name) })
  }
  for (const name of names('set', sets)) {
    const counts = { primary: 1, hotbackup: 1, coldbackup: 0 }
    const set = setOf(name, counts, templateOf(name), { checkpoint: { interval } })
    await api.create(backupPodSets, set, { namespace, signal })
    made.push({ name, kind: 'set', host: await serviceOf(context, namespace, name) })
  }
  return made
}

async function serviceOf({ api, signal }: BenchContext, namespace: string, name: string): Promise<string> {
  const metadata = { name: `${name}-clients` }
  const spec = { selector: primariesOf(name), ports: [{ port, targetPort: port }] }
  const service = { apiVersion: 'v1', kind: 'Service', metadata, spec }
  return demand((await api.create(services, service, { namespace, signal })).spec?.clusterIP, 'an address')
}

/** Returns the pod that has the memory. */
export async function primaryOf(
  { api, signal }: BenchContext,
  namespace: string,
  { name }: Workload,
): Promise<Pod | undefined> {
  const { items } = await api.list(pods, { namespace, labelSelector: `${labels.set}=${name}` }, { signal })
  return items.find(pod => kindOf(pod) === 'primary' && isReady(pod))
}

/** True once other nodes have the memory, and no Migration is open. */
export async function isAtRest(
  { api, signal }: BenchContext,
  namespace: string,
  { name, kind }: Workload,
): Promise<boolean> {
  const ref = { namespace, name }
  const found: MigratingPod | BackupPodSet | undefined = await (kind === 'set'
    ? api.get(backupPodSets, ref, { signal })
    : api.get(migratingPods, ref, { signal })
  ).catch((error: unknown) => {
    if (isKubeError(error, 'NotFound')) return undefined
    throw error
  })
  const isTrue = (type: string) =>
    found?.status?.conditions?.some(each => each.type === type && each.status === 'True') ?? false
  return isTrue('Ready') && isTrue('CheckpointReady')
}
