import { until as waitUntil } from '../../playground/until.ts'
import { backupPodSets, type PodTemplate } from '../../src/api/backuppodset.ts'
import { type NodeReport, nodeReports, type SlotReport } from '../../src/api/node-report.ts'
import { type NumberedSlotLease, parseNumberedSlotLease, slotLeaseName } from '../../src/api/numbered-slot.ts'
import { leases, services } from '../../src/kube/resources.ts'
import { redisPort } from '../../zoo/redis.ts'
import { type BenchContext, type BenchImages, demand } from '../bench.ts'
import { subject } from '../checkpoint/subjects.ts'
import { setOf } from '../objects.ts'

/** The load on a redis during the measurement. */
export interface Usage {
  readonly connections: number
  /** Messages a second over all connections. */
  readonly perSecond: number
}

export const labelOf = ({ connections, perSecond }: Usage): string =>
  `${connections} connection${connections === 1 ? '' : 's'}, ${perSecond}/s`

/** The application of a set. */
export interface App {
  readonly template: (images: BenchImages) => PodTemplate
  readonly port: number
}

const smallRedis: App = { template: subject('redis 3MB').template, port: redisPort }

/** A set of one primary and one Frozen backup, with a Service. */
export interface Loaded {
  readonly name: string
  /** Address of its slot's Service. */
  readonly address: string
  lease(): Promise<NumberedSlotLease>
  /** Returns the nodes' newest reports about its slot: those of a source and its holders. */
  reports(): Promise<readonly SlotReport[]>
  /** Resolves with the Lease once another pod holds it. */
  promoted(before: NumberedSlotLease): Promise<NumberedSlotLease>
  /** How fast the primary is saved, by the nodes' reports; the pipeline is the longest, seconds. */
  pace(): Promise<{ readonly reason: string | undefined; readonly pipeline: number }>
  /** Waits until it can lose its primary and has been saved twice more since. */
  protected(): Promise<void>
  end(): Promise<void>
}

/**
 * Adds resource requests, as a user with so many clients would: without them the rest of the node has more weight than
 * the pod.
 */
function withRequests(template: PodTemplate): PodTemplate {
  const resources = { requests: { cpu: '500m', memory: '64Mi' } }
  const containers = (template.spec?.containers ?? []).map(container => ({ ...container, resources }))
  return { ...template, spec: { ...template.spec, containers } }
}

export const untilLoaded = <T>(
  { signal }: BenchContext,
  what: string,
  ask: () => Promise<T | undefined | false>,
): Promise<T> => waitUntil(what, ask, { patienceMs: 120_000, pollMs: 100, signal })

export async function loadedSet(
  context: BenchContext,
  namespace: string,
  name: string,
  interval: string,
  app: App = smallRedis,
): Promise<Loaded> {
  const { api, images, signal } = context
  const ref = { namespace, name }
  const template = withRequests(app.template(images))
  await api.create(
    backupPodSets,
    setOf(name, { primary: 1, hotbackup: 1, coldbackup: 0 }, template, {
      checkpoint: { interval },
      hotBackup: { mode: 'Frozen' },
      service: { perSlot: true, ports: [{ port: app.port }] },
    }),
    { namespace, signal },
  )
  const slotService = { namespace, name: slotLeaseName(name, 0) }
  const service = await untilLoaded(context, `the Service of slot 0 of ${name}`, () =>
    api.get(services, slotService).catch(() => undefined),
  )
  const reports = async (): Promise<readonly SlotReport[]> => {
    const { items } = await api.list(nodeReports, {})
    return items
      .flatMap(({ status }: NodeReport) => status?.slots ?? [])
      .filter(it => it.name === slotLeaseName(name, 0))
  }
  const isProtected = async () => {
    const { status } = await api.get(backupPodSets, ref)
    return status?.slots?.[0]?.protection === 'Frozen'
  }
  const lease = async () =>
    demand(
      parseNumberedSlotLease(await api.get(leases, { namespace, name: slotLeaseName(name, 0) })),
      'a Lease',
    )
  const newest = async () => Math.max(0, ...(await reports()).map(({ generation }) => generation))
  return {
    name,
    address: demand(service.spec?.clusterIP, 'a cluster IP'),
    lease,
    reports,
    promoted: before =>
      untilLoaded(context, 'the promotion', async () => {
        const now = await lease()
        return now.holder.uid !== before.holder.uid && now
      }),
    async pace() {
      const all = await reports()
      const { intervalReason } = demand(
        all.find(({ role }) => role === 'source'),
        'a report of its node',
      )
      return {
        reason: intervalReason,
        pipeline: Math.max(...all.flatMap(({ pipelineSeconds }) => pipelineSeconds ?? [])),
      }
    },
    async protected() {
      await untilLoaded(context, `${name} protected`, isProtected)
      const enough = (await newest()) + 2
      await untilLoaded(context, `${name} saved twice`, async () => (await newest()) >= enough)
      await untilLoaded(context, `${name} protected`, isProtected)
    },
    end: () => api.delete(backupPodSets, ref, { propagationPolicy: 'Background' }).then(() => undefined),
  }
}
