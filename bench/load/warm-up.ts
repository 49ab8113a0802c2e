import { kill } from 'node:process'
import { setTimeout as sleep } from 'node:timers/promises'
import { pods } from '../../src/kube/resources.ts'
import { costly } from '../../zoo/demanding.ts'
import { answerOf, numberIn } from '../../zoo/http-specimen.ts'
import { type Bench, type BenchContext, demand } from '../bench.ts'
import { agentMetrics } from '../checkpoint/agent-metrics.ts'
import { inNamespace } from '../namespace.ts'
import { pidInPod } from '../node/process.ts'
import type { Sampler } from '../report.ts'
import { type App, type Loaded, loadedSet, untilLoaded } from './loaded.ts'
import { watchSaves } from './saves.ts'
import { noteAge } from './state-age.ts'

const intervalSeconds = 3
/** Of clients that each send one request after the other. */
const clients = 4

/**
 * A runtime that warms up changes most of its memory for some seconds, so its first freeze is much longer than the later
 * ones.
 */
export const warmUp: Bench = {
  name: 'warm-up',
  title: 'kill -9 of a JVM that is warming up under load: age of its state',
  trials: 12,
  needs: ['operator', 'playground'],
  images: ['zoo-java'],
  run: async (context, samples) => {
    await inNamespace(context.api, 'bench-warm-up', context.signal, async namespace => {
      for (let trial = 1; trial <= context.n; trial += 1) {
        const set = await loadedSet(context, namespace, `jvm-${trial}`, `${intervalSeconds}s`, jvm)
        try {
          const text = await oneKill(context, namespace, set, samples)
          context.say(`${trial}/${context.n}: ${text}`)
        } finally {
          await set.end()
        }
      }
    })
    const between = samples.values('between saves').length > 0
    return samples.report(
      'warm-up',
      between ? { 'between saves': { 'two intervals': 2 * intervalSeconds } } : {},
    )
  },
}

const java = demand(
  costly.find(({ name }) => name === 'java'),
  'the specimen of a JVM',
)
const jvm: App = { template: () => java.template, port: java.port }

async function oneKill(
  context: BenchContext,
  namespace: string,
  set: Loaded,
  samples: Sampler,
): Promise<string> {
  const { api, signal } = context
  const named = async () => {
    const lease = await set.lease().catch(() => undefined)
    return lease?.node === undefined ? undefined : lease
  }
  const first = await untilLoaded(context, 'the primary', named)
  const ip = await untilLoaded(context, 'its address', () => addressOf(context, namespace, first.holder.name))
  const source = await agentMetrics(api, demand(first.node, 'a node'), signal)
  const saves = watchSaves(source, ({ frozen, pipeline, gap }) => {
    samples.add('freeze', 's', frozen)
    samples.add('pipeline on its node', 's', pipeline)
    if (gap !== undefined) samples.add('between saves', 's', gap)
  })
  const load = startLoad(ip, () => context.clock.now())
  await untilLoaded(context, 'a backup', async () => {
    const reports = await set.reports()
    return reports.some(({ usable }) => usable === 'Frozen')
  })
  await sleep(Math.random() * 3_000 * intervalSeconds, undefined, { signal })
  await saves.stop()
  const pace = await set.pace()
  const pid = demand(await pidInPod(first.holder.uid, java.program), 'the process of the JVM')
  // Before the kill: an answer of the successor would count as one of the dead one.
  const answered = load.stop()
  const killedAt = context.clock.now()
  kill(pid, 'SIGKILL')
  const answeredAt = await answered
  const { holder: heir } = await set.promoted(first)
  const next = await untilLoaded(context, 'its address', () => addressOf(context, namespace, heir.name))
  const { count } = await untilLoaded(context, 'its answer', () =>
    java.read(next).then(
      number => ({ count: number }),
      () => undefined,
    ),
  )
  if (count === 0) throw new Error('the slot started empty')
  const age = Math.max(0, killedAt - lastAnswered(answeredAt, count)) / 1000
  const { text } = noteAge(samples, '', { age, intervalSeconds, ...pace })
  return `${answeredAt.size} answers, ${text}`
}

const addressOf = async ({ api, signal }: BenchContext, namespace: string, name: string) =>
  (await api.get(pods, { namespace, name }, { signal }).catch(() => undefined))?.status?.podIP

/** Returns when the newest answer that the memory contains was given. Unix ms. */
function lastAnswered(answeredAt: ReadonlyMap<number, number>, count: number): number {
  for (let number = count; number > 0; number -= 1) {
    const at = answeredAt.get(number)
    if (at !== undefined) return at
  }
  throw new Error(`no client was answered by a number up to ${count}`)
}

/**
 * Requests `/` as fast as it is answered. Its end resolves with the time of each answer until then, by number, when the last
 * client has its answer.
 */
function startLoad(ip: string, now: () => number): { stop(): Promise<ReadonlyMap<number, number>> } {
  const answeredAt = new Map<number, number>()
  const stopping = new AbortController()
  const client = async () => {
    while (!stopping.signal.aborted) {
      const number = await answerOf(ip, java.port, '/').then(
        answer => numberIn(answer, 'count'),
        () => undefined,
      )
      // It has not started yet.
      if (number === undefined) await sleep(20)
      else if (!stopping.signal.aborted) answeredAt.set(number, now())
    }
  }
  const running = Array.from({ length: clients }, client)
  return {
    async stop() {
      stopping.abort()
      await Promise.all(running)
      return answeredAt
    },
  }
}
