import { backupPodSets } from '../../src/api/backuppodset.ts'
import type { Pod } from '../../src/kube/resources.ts'
import { connectRedis, write } from '../../zoo/redis.ts'
import { type Bench, type BenchContext, demand } from '../bench.ts'
import { inNamespace } from '../namespace.ts'
import { setOf } from '../objects.ts'
import { podsOf, runningPod, untilLarge as until } from '../observe/pods.ts'
import type { Baselines, Sampler } from '../report.ts'
import { type Generations, watchGenerations } from './generations.ts'
import { kubeletCheckpoint, makeCheckpointsPossible } from './kubelet.ts'
import { containerName, type Subject, subjects } from './subjects.ts'

export const checkpoint: Bench = {
  name: 'checkpoint',
  title:
    "memory saved and shipped to another node, as the agents measure it; beside the kubelet's checkpoint API",
  trials: 20,
  needs: ['operator', 'playground'],
  run: async (context, samples) => {
    await inNamespace(context.api, 'bench-checkpoint', context.signal, async namespace => {
      for (const subject of subjects) await measure(context, namespace, subject, samples)
    })
    return samples.report('checkpoint', baselines(samples))
  },
}

/** Long enough that no checkpoint happens during the kubelet's. */
const never = '1h'
const writesAtOnce = 5_000

/** Generations before the first trial. */
const warmUp = 20

async function measure(
  context: BenchContext,
  namespace: string,
  subject: Subject,
  samples: Sampler,
): Promise<void> {
  const { api, signal, images } = context
  const n = Math.max(3, Math.round(context.n * subject.share))
  const ref = { namespace, name: subject.set }
  const checkpoint = { interval: subject.interval, keep: 1, maxFreezePercent: 50 }
  await api.create(
    backupPodSets,
    setOf(subject.set, { primary: 1, hotbackup: 1, coldbackup: 0 }, subject.template(images), {
      checkpoint,
      hotBackup: { mode: 'Staged' },
    }),
    { namespace, signal },
  )
  try {
    const primary = await runningPod(context, namespace, subject.set, 'primary')
    const host = demand(primary.status?.podIP, 'an address')
    await subject.prepare(host)
    const understudy = await runningPod(context, namespace, subject.set, 'hotbackup')
    const generations = await watchGenerations(context, primary, understudy)
    // The first generations are whole, some date from before the app had its size, and the agents have only just
    // started.
    for (let i = 0; i < Math.max(3, warmUp * subject.share); i += 1) await generations.next('holder')
    await ownDumps(context, subject, host, n, generations, samples)
    if (subject.keys !== undefined)
      await fewWrites(context, subject, host, subject.keys, generations, samples)
    await api.patch(
      backupPodSets,
      ref,
      { type: 'merge', body: { spec: { checkpoint: { ...checkpoint, interval: never } } } },
      { signal },
    )
    // Two CRIU processes cannot dump the same process at the same time.
    await generations.rest()
    await kubeletDumps(context, subject, primary, Math.max(3, Math.round(n / 4)), samples)
  } finally {
    await api.delete(backupPodSets, ref, { propagationPolicy: 'Foreground' })
    await until(
      'the end of the set',
      async () => (await podsOf(context, namespace, subject.set)).length === 0,
    )
  }
}

async function ownDumps(
  context: BenchContext,
  subject: Subject,
  host: string,
  n: number,
  generations: Generations,
  samples: Sampler,
): Promise<void> {
  const load = await subject.load?.(host)
  try {
    // The next generation contains all that changed since the previous one, so it would be no fair first trial.
    if (load !== undefined) await generations.next('holder')
    const client = await subject.client(host, context.signal)
    try {
      for (let trial = 1; trial <= n; trial += 1) {
        client.worst()
        const both = [generations.next('source'), generations.next('holder')] as const
        const [saved, staged] = await Promise.all(both)
        samples.add(`${subject.name} freeze`, 's', saved.frozen)
        samples.add(`${subject.name} freeze, by CRIU's statistics`, 's', saved.criuFrozen)
        samples.add(`${subject.name} freeze, seen by a client`, 's', client.worst() / 1000)
        samples.add(`${subject.name} total`, 's', saved.pipeline)
        samples.add(`${subject.name} image`, 'bytes', saved.size)
        samples.add(`${subject.name} shipped`, 'bytes', staged.shipped)
        samples.add(`${subject.name} staged`, 's', staged.pipeline)
        context.say(
          `${subject.name} ${trial}/${n}: frozen ${(saved.frozen * 1000).toFixed(1)} ms, staged after ${(staged.pipeline * 1000).toFixed(0)} ms`,
        )
      }
    } finally {
      await client.stop()
    }
  } finally {
    await load?.stop()
  }
}

/** Measures how much is shipped for an idle application after a known number of writes. */
async function fewWrites(
  context: BenchContext,
  subject: Subject,
  host: string,
  keys: number,
  generations: Generations,
  samples: Sampler,
): Promise<void> {
  const client = await connectRedis(host)
  try {
    for (let trial = 1; trial <= 3; trial += 1) {
      await generations.next('holder')
      await write(client, keys, writesAtOnce)
      // The first generation may have begun before the last write; the second cannot have.
      const both = [await generations.next('holder'), await generations.next('holder')]
      const shipped = both.reduce((sum, each) => sum + each.shipped, 0)
      samples.add(`${subject.name} shipped after ${writesAtOnce} writes`, 'bytes', shipped)
      context.say(`${subject.name}: ${(shipped / 1e6).toFixed(1)} MB after ${writesAtOnce} writes`)
    }
  } finally {
    client.close()
  }
}

async function kubeletDumps(
  context: BenchContext,
  subject: Subject,
  primary: Pod,
  n: number,
  samples: Sampler,
): Promise<void> {
  const playground = demand(context.playground, 'a playground')
  const host = demand(primary.status?.podIP, 'an address')
  await makeCheckpointsPossible(playground, demand(primary.spec?.nodeName, 'a node'), context.signal)
  const load = await subject.load?.(host)
  const client = await subject.client(host, context.signal)
  try {
    for (let trial = 1; trial <= n; trial += 1) {
      client.worst()
      const seconds = await kubeletCheckpoint(context.api, playground, primary, containerName, context.signal)
      const stall = client.worst() / 1000
      samples.add(`${subject.name} by the kubelet: freeze, seen by a client`, 's', stall)
      samples.add(`${subject.name} by the kubelet: total`, 's', seconds)
      context.say(
        `${subject.name}, kubelet ${trial}/${n}: ${(stall * 1000).toFixed(0)} of ${(seconds * 1000).toFixed(0)} ms`,
      )
    }
  } finally {
    await client.stop()
    await load?.stop()
  }
}

function baselines(samples: Sampler): Baselines {
  const kubelet = (name: string, what: string) => ({
    'kubelet API': { case: `${name} by the kubelet: ${what}` },
  })
  return Object.fromEntries(
    subjects
      .filter(({ name }) => samples.values(`${name} by the kubelet: total`).length > 0)
      .flatMap(({ name, keys }): [string, Baselines[string]][] => [
        [`${name} freeze`, kubelet(name, 'freeze, seen by a client')],
        [`${name} freeze, by CRIU's statistics`, kubelet(name, 'freeze, seen by a client')],
        [`${name} freeze, seen by a client`, kubelet(name, 'freeze, seen by a client')],
        [`${name} total`, kubelet(name, 'total')],
        [`${name} shipped`, { 'whole image': { case: `${name} image` } }],
        ...(keys === undefined
          ? []
          : [
              [
                `${name} shipped after ${writesAtOnce} writes`,
                { 'whole image': { case: `${name} image` } },
              ] satisfies [string, Baselines[string]],
            ]),
      ]),
  )
}
