import { type MachineWeight, weigh } from '../../playground/cgroups.ts'
import type { Cluster } from '../../playground/cluster.ts'
import { until } from '../../playground/until.ts'
import { backupPodSets, type PodTemplate } from '../../src/api/backuppodset.ts'
import { nodes } from '../../src/kube/resources.ts'
import { keysFor, redisPort } from '../../zoo/redis.ts'
import { type Bench, type BenchContext, demand } from '../bench.ts'
import { type Generations, watchGenerations } from '../checkpoint/generations.ts'
import { subject } from '../checkpoint/subjects.ts'
import { inNamespace } from '../namespace.ts'
import { cgroupsOfNode } from '../node/cgroups.ts'
import { pidInPod } from '../node/process.ts'
import { setOf } from '../objects.ts'
import { podsOf, runningPod } from '../observe/pods.ts'
import type { Sampler } from '../report.ts'
import { agentUsage } from './agent-usage.ts'
import { buildLoader, type Load, type Order } from './load.ts'
import { redisBenchmark, type Saturated } from './redis-benchmark.ts'

export const cost: Bench = {
  name: 'cost',
  title: 'cost of checkpoints of a 100 MB redis every 1 to 10 s for its clients and nodes, beside none',
  trials: 5,
  needs: ['operator', 'playground'],
  run: async (context, samples) => {
    await inNamespace(context.api, 'bench-cost', context.signal, namespace =>
      measure(context, namespace, samples),
    )
    return samples.report('cost', baselines)
  },
}

const redis = subject('redis 100MB')
const keys = keysFor(100e6)
/** Seconds between checkpoints. */
const intervals = [10, 5, 2, 1] as const
/** An interval so long that no checkpoint happens: the baseline of the others, on the same pods in the same round. */
const without = 'without checkpoints'
type Pace = (typeof intervals)[number] | typeof without
const nameOf = (pace: Pace) => (pace === without ? without : `interval ${pace}`)
const intervalOf = (pace: Pace) => (pace === without ? '1h' : `${pace}s`)

/** Three checkpoints at the longest interval. */
const halfSeconds = 30
const saturatedSeconds = 20
/** Requests to measure the highest throughput. */
const calibration = 400_000

const baselines = Object.fromEntries(
  intervals.flatMap(pace =>
    [
      'throughput half load',
      'throughput saturated',
      'p99 outside freezes half load',
      'p99 outside freezes and their queues half load',
      'p99 half load',
      'p99 saturated',
    ].map(what => [`${what} ${nameOf(pace)}`, { without: { case: `${what} ${without}` } }]),
  ),
)

/**
 * Adds resource requests, as users do for latency-sensitive apps: without them the rest of the node would have
 * precedence.
 */
function withRequests(template: PodTemplate): PodTemplate {
  const resources = { requests: { cpu: '1', memory: '256Mi' } }
  const containers = (template.spec?.containers ?? []).map(container => ({ ...container, resources }))
  return { ...template, spec: { ...template.spec, containers } }
}

interface Subject {
  readonly host: string
  load(order: Order): Promise<Load>
  readonly generations: Generations
  /** The primary's node, and the node of the backup that holds its memory. */
  readonly places: readonly { readonly role: 'source' | 'holder'; readonly node: string }[]
  setInterval(pace: Pace): Promise<void>
}

async function measure(context: BenchContext, namespace: string, samples: Sampler): Promise<void> {
  const { api, signal, images } = context
  const playground = demand(context.playground, 'a playground')
  const ref = { namespace, name: redis.set }
  const checkpoint = (pace: Pace) => ({ interval: intervalOf(pace), keep: 1, maxFreezePercent: 50 })
  const { items } = await api.list(nodes, {}, { signal })
  const idle = new Map(
    await Promise.all(
      items.map(
        async ({ metadata }) =>
          [metadata.name, (await agentUsage(api, playground, metadata.name)).memory] as const,
      ),
    ),
  )
  await api.create(
    backupPodSets,
    setOf(redis.set, { primary: 1, hotbackup: 1, coldbackup: 0 }, withRequests(redis.template(images)), {
      checkpoint: checkpoint(1),
      hotBackup: { mode: 'Staged' },
    }),
    { namespace, signal },
  )
  const primary = await runningPod(context, namespace, redis.set, 'primary')
  const host = demand(primary.status?.podIP, 'an address')
  await redis.prepare(host)
  const understudy = await runningPod(context, namespace, redis.set, 'hotbackup')
  const pid = demand(await pidInPod(primary.metadata.uid, 'redis-server'), 'the process of redis')
  const generations = await watchGenerations(context, primary, understudy)
  const places = [
    { role: 'source', node: demand(primary.spec?.nodeName, 'a node') },
    { role: 'holder', node: demand(understudy.spec?.nodeName, 'a node') },
  ] as const
  // The first generations are whole, and some date from before the app had its size.
  for (let i = 0; i < 3; i += 1) await generations.next('holder')
  for (const { role, node } of places) {
    const { memory } = await agentUsage(api, playground, node)
    samples.add(`agent memory per primary, ${role}`, 'bytes', memory - (idle.get(node) ?? 0))
  }
  const others = items.map(({ metadata }) => metadata.name).filter(name => name !== places[0].node)
  const load = await buildLoader()
  try {
    await weighNodes(playground, others, 'elsewhere')
    await rounds(context, samples, {
      host,
      load: order => load({ host, port: redisPort, keys, pid }, order, signal),
      generations,
      places,
      setInterval: async pace => {
        const body = { spec: { checkpoint: checkpoint(pace) } }
        await api.patch(backupPodSets, ref, { type: 'merge', body }, { signal })
        if (pace === without) await generations.rest()
        else await generations.next('holder')
      },
    })
  } finally {
    await weighNodes(playground, others, 'node')
    await api.delete(backupPodSets, ref, { propagationPolicy: 'Foreground' })
    await until(
      'the end of the set',
      async () => (await podsOf(context, namespace, redis.set)).length === 0,
      { patienceMs: 120_000, pollMs: 250 },
    )
  }
}

/**
 * Lowers the weight of the given nodes: the holders' work must not slow down the primary's node, which shares
 * processors with them only in a playground.
 */
async function weighNodes(
  cluster: Cluster,
  nodeNames: readonly string[],
  weight: MachineWeight,
): Promise<void> {
  for (const node of nodeNames)
    for (const group of await cgroupsOfNode(cluster, node)) await weigh(group, weight)
}

async function rounds(context: BenchContext, samples: Sampler, it: Subject): Promise<void> {
  const { n, say, signal } = context
  await it.setInterval(without)
  const { perSecond } = await redisBenchmark(it.host, keys, calibration, signal)
  const half = Math.round(perSecond / 2)
  say(`saturated at ${perSecond.toFixed(0)} requests/s without checkpoints: half of that is the load`)
  for (let round = 1; round <= n; round += 1) {
    const seen = new Map<Pace, { half: Load; saturated: Saturated }>()
    let idleCpu: readonly number[] = []
    for (const pace of [without, ...intervals] as const) {
      if (round > 1 || pace !== without) await it.setInterval(pace)
      const before = { cpu: await cpuOf(context, it), generations: await it.generations.count() }
      const load = await it.load({ perSecond: half, seconds: halfSeconds })
      const cpu = (await cpuOf(context, it)).map((seconds, place) => seconds - (before.cpu[place] ?? 0))
      const refreshes = (await it.generations.count()) - before.generations
      if (pace === without) idleCpu = cpu
      if ((pace === without) !== (refreshes === 0))
        throw new Error(`${refreshes} checkpoints in ${halfSeconds} s ${nameOf(pace)}`)
      const saturated = await redisBenchmark(it.host, keys, Math.round(perSecond * saturatedSeconds), signal)
      seen.set(pace, { half: load, saturated })
      note(samples, pace, load, saturated)
      if (pace !== without) {
        samples.add(`time between refreshes half load ${nameOf(pace)}`, 's', halfSeconds / refreshes)
        it.places.forEach(({ role }, place) => {
          const seconds = ((cpu[place] ?? 0) - (idleCpu[place] ?? 0)) / refreshes
          samples.add(`agent CPU seconds per refresh ${nameOf(pace)}, ${role}`, 's', seconds)
        })
      }
      say(
        `round ${round}/${n}, ${nameOf(pace)}: ${load.perSecond.toFixed(0)} of ${half}/s, p99 ${load.p99Outside.toFixed(2)} ms outside of ${load.freezes.length} freezes, ${load.p99Undisturbed.toFixed(2)} of their queues; saturated ${saturated.perSecond.toFixed(0)}/s`,
      )
    }
    const base = demand(seen.get(without), 'the load without checkpoints')
    for (const pace of intervals) {
      const now = demand(seen.get(pace), 'a load')
      const ratio = (what: string, value: number) => samples.add(`${what} ${nameOf(pace)}`, 'ratio', value)
      ratio('throughput ratio half load', now.half.perSecond / base.half.perSecond)
      ratio('throughput ratio saturated', now.saturated.perSecond / base.saturated.perSecond)
      ratio('p99 ratio half load, outside freezes,', now.half.p99Outside / base.half.p99Outside)
      ratio(
        'p99 ratio half load, outside freezes and their queues,',
        now.half.p99Undisturbed / base.half.p99Undisturbed,
      )
    }
  }
}

function note(samples: Sampler, pace: Pace, load: Load, saturated: Saturated): void {
  const name = nameOf(pace)
  samples.add(`throughput half load ${name}`, 'requests/s', load.perSecond)
  samples.add(`throughput saturated ${name}`, 'requests/s', saturated.perSecond)
  samples.add(`p99 outside freezes half load ${name}`, 's', load.p99Outside / 1_000)
  samples.add(`p99 outside freezes and their queues half load ${name}`, 's', load.p99Undisturbed / 1_000)
  samples.add(`p99 half load ${name}`, 's', load.p99 / 1_000)
  samples.add(`p99 saturated ${name}`, 's', saturated.p99)
  for (const freeze of load.freezes) samples.add(`freeze half load ${name}`, 's', freeze / 1_000)
}

async function cpuOf({ api, playground }: BenchContext, { places }: Subject): Promise<readonly number[]> {
  const cluster = demand(playground, 'a playground')
  return Promise.all(places.map(async ({ node }) => (await agentUsage(api, cluster, node)).cpuSeconds))
}
