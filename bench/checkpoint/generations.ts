import type { Pod } from '../../src/kube/resources.ts'
import { type BenchContext, demand } from '../bench.ts'
import { untilLarge as until } from '../observe/pods.ts'
import { agentMetrics, oneMore, type Role, type Totals } from './agent-metrics.ts'

/** Longer than the dump of the largest subject takes. */
const restMs = 10_000

export interface Generations {
  /** Returns how many generations the source has saved so far. */
  count(): Promise<number>
  /** Resolves with the next generation that is complete on that node. Skips generations that came several at once. */
  next(role: Role): Promise<Totals>
  /** Resolves when no generation has come for a while. */
  rest(): Promise<void>
}

export async function watchGenerations(
  { api, signal }: BenchContext,
  primary: Pod,
  understudy: Pod,
): Promise<Generations> {
  const nodeOf = (pod: Pod) => demand(pod.spec?.nodeName, 'a node')
  const source = await agentMetrics(api, nodeOf(primary), signal)
  const holder = await agentMetrics(api, nodeOf(understudy), signal)
  return {
    count: async () => (await source.read('source')).count,
    async next(role) {
      const agent = role === 'source' ? source : holder
      let before = await agent.read(role)
      return until(`a generation at its ${role}`, async () => {
        const now = await agent.read(role)
        const more = oneMore(before, now)
        before = now
        return more
      })
    },
    async rest() {
      let seen = { count: -1, at: 0 }
      await until('the last generation', async () => {
        const { count } = await source.read('source')
        if (count !== seen.count) seen = { count, at: performance.now() }
        return performance.now() - seen.at > restMs
      })
    },
  }
}
