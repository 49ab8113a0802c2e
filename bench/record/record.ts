import { backupPodSets } from '../../src/api/backuppodset.ts'
import { withRecord } from '../agents.ts'
import { type Bench, type BenchContext, demand } from '../bench.ts'
import { watchGenerations } from '../checkpoint/generations.ts'
import { type Subject, subject } from '../checkpoint/subjects.ts'
import { inNamespace } from '../namespace.ts'
import { setOf } from '../objects.ts'
import { podsOf, runningPod, untilLarge as until } from '../observe/pods.ts'
import type { Baselines, Sampler } from '../report.ts'

export const record: Bench = {
  name: 'record',
  title: 'redis of 1 GB saved with and without the record of written pages',
  trials: 10,
  needs: ['operator', 'playground'],
  run: async (context, samples) => {
    const large = subject('redis 1GB')
    const cases = [
      { name: '1,000 writes/s', subject: large },
      { name: 'at rest', subject: { ...large, load: undefined } },
    ]
    const measureAll = async (way: 'whole' | 'recorded') => {
      for (const it of cases)
        await inNamespace(context.api, 'bench-record', context.signal, namespace =>
          measure(context, namespace, it.subject, `${it.name}, ${way}`, samples),
        )
    }
    await measureAll('whole')
    await withRecord(context, 'Always', () => measureAll('recorded'))
    const baselines = cases.flatMap(({ name }) =>
      measured.map((what): [string, Baselines[string]] => [
        `${name}, recorded: ${what}`,
        { whole: { case: `${name}, whole: ${what}` } },
      ]),
    )
    return samples.report('record', Object.fromEntries(baselines))
  },
}

const measured = ['freeze', 'freeze, seen by a client', 'total', 'staged'] as const

/** The first generations are whole, and some date from before the app had its size. */
const warmUp = 5

async function measure(
  context: BenchContext,
  namespace: string,
  { set, interval, template, prepare, load, client }: Subject,
  name: string,
  samples: Sampler,
): Promise<void> {
  const { api, signal, images, n } = context
  const checkpoint = { interval, keep: 1, maxFreezePercent: 50 }
  const options = { checkpoint, hotBackup: { mode: 'Staged' } } as const
  const counts = { primary: 1, hotbackup: 1, coldbackup: 0 }
  await api.create(backupPodSets, setOf(set, counts, template(images), options), { namespace, signal })
  try {
    const primary = await runningPod(context, namespace, set, 'primary')
    const host = demand(primary.status?.podIP, 'an address')
    await prepare(host)
    const generations = await watchGenerations(
      context,
      primary,
      await runningPod(context, namespace, set, 'hotbackup'),
    )
    const running = await load?.(host)
    const watcher = await client(host, signal)
    try {
      for (let i = 0; i < warmUp; i += 1) await generations.next('holder')
      for (let trial = 1; trial <= n; trial += 1) {
        watcher.worst()
        const both = [generations.next('source'), generations.next('holder')] as const
        const [saved, staged] = await Promise.all(both)
        samples.add(`${name}: freeze`, 's', saved.frozen)
        samples.add(`${name}: freeze, seen by a client`, 's', watcher.worst() / 1000)
        samples.add(`${name}: total`, 's', saved.pipeline)
        samples.add(`${name}: staged`, 's', staged.pipeline)
        context.say(`${name} ${trial}/${n}: frozen ${(saved.frozen * 1000).toFixed(1)} ms`)
      }
    } finally {
      await watcher.stop()
      await running?.stop()
    }
  } finally {
    await api.delete(backupPodSets, { namespace, name: set }, { propagationPolicy: 'Foreground' })
    await until('the end of the set', async () => (await podsOf(context, namespace, set)).length === 0)
  }
}
