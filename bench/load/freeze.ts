import { setTimeout as sleep } from 'node:timers/promises'
import { redisPort } from '../../zoo/redis.ts'
import { type Bench, type BenchContext, demand } from '../bench.ts'
import { agentMetrics } from '../checkpoint/agent-metrics.ts'
import { inNamespace } from '../namespace.ts'
import type { Sampler } from '../report.ts'
import { buildCrowd } from './crowd.ts'
import { type Loaded, labelOf, loadedSet, type Usage, untilLoaded } from './loaded.ts'
import { watchSaves } from './saves.ts'

export const loadFreeze: Bench = {
  name: 'load-freeze',
  title: 'how a freeze of redis grows with its connections and their messages',
  trials: 20,
  needs: ['operator', 'playground'],
  run: async (context, samples) => {
    await inNamespace(context.api, 'bench-load', context.signal, async namespace => {
      const set = await loadedSet(context, namespace, 'load-freeze', context.load.interval)
      try {
        await set.protected()
        for (const usage of usages) await measure(context, set, usage, samples)
      } finally {
        await set.end()
      }
    })
    const base = labelOf(idle)
    return samples.report(
      'load-freeze',
      Object.fromEntries(
        usages.slice(1).map(usage => [`${labelOf(usage)}: freeze`, { [base]: { case: `${base}: freeze` } }]),
      ),
    )
  },
}

const idle: Usage = { connections: 1, perSecond: 0 }

const usages: readonly Usage[] = [
  idle,
  ...[1, 50, 200, 500].flatMap(connections =>
    [0, 500, 2000]
      .filter(perSecond => connections > 1 || perSecond > 0)
      .map(perSecond => ({ connections, perSecond })),
  ),
]

async function measure(context: BenchContext, set: Loaded, usage: Usage, samples: Sampler): Promise<void> {
  const { api, n, say, signal } = context
  const playground = demand(context.playground, 'a playground')
  const label = labelOf(usage)
  const { node } = await set.lease()
  const start = await buildCrowd()
  const from = demand(
    playground.nodes.findLast(it => it !== node),
    'another node',
  )
  const crowd = start(playground, from, { address: set.address, port: redisPort, ...usage, knockMs: 0 })
  try {
    await untilLoaded(context, 'all clients connected', async () => {
      const { up } = await crowd.tell()
      return up === usage.connections
    })
    // The changes caused by connecting belong to no trial.
    await sleep(3_000, undefined, { signal })
    const source = await agentMetrics(api, demand(node, 'a node'), signal)
    const done = Promise.withResolvers<void>()
    let seen = 0
    const saves = watchSaves(source, ({ frozen, criuFrozen, pipeline, gap }) => {
      if (seen === n) return
      seen += 1
      samples.add(`${label}: freeze`, 's', frozen)
      samples.add(`${label}: freeze, by CRIU's statistics`, 's', criuFrozen)
      samples.add(`${label}: pipeline on its node`, 's', pipeline)
      if (gap !== undefined) samples.add(`${label}: between saves`, 's', gap)
      if (seen === n) done.resolve()
    })
    await Promise.race([done.promise, saves.over])
    await saves.stop()
    const freezes = samples.values(`${label}: freeze`).toSorted((a, b) => a - b)
    say(`${label}: median freeze ${((freezes[freezes.length >> 1] ?? 0) * 1000).toFixed(1)} ms`)
  } finally {
    await crowd.stop()
  }
}
