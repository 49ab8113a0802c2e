import { type MigratingPod, migratingPods } from '../../src/api/migrating-pod.ts'
import { apiVersionOf, pods } from '../../src/kube/resources.ts'
import type { Bench, BenchContext } from '../bench.ts'
import { redis } from '../checkpoint/subjects.ts'
import { inNamespace } from '../namespace.ts'
import { untilLarge as until } from '../observe/pods.ts'
import { baselinesOf, ofDeployment } from './deployment.ts'
import { type Moving, moveTrials, type Trigger } from './move.ts'

/** Downtime of the published system by the size of the state, GB: medians of 10 trials, s. */
const published: ReadonlyMap<number, number> = new Map([
  [0, 2.1],
  [0.1, 2.0],
  [0.2, 2.0],
  [0.5, 4.3],
  [1, 4.0],
  [2.5, 7.8],
  [5, 14],
  [10, 26.7],
  [15, 38.4],
  [20, 51.7],
  [25, 63.5],
  [50, 128.5],
  [100, 255],
])

/** The pod of a MigratingPod is deleted, and the next one continues with its memory. */
const byDeletion: Trigger = {
  async create({ api, signal, images }, namespace, { set, template, interval }) {
    const about = {
      apiVersion: apiVersionOf(migratingPods),
      kind: migratingPods.kind,
      metadata: { name: set },
    }
    const spec = { template: template(images), checkpoint: { interval } }
    await api.create(migratingPods, { ...about, spec }, { namespace, signal })
  },
  async move(context, namespace, set, { metadata: { name, uid } }) {
    const { api, signal } = context
    await api.delete(pods, { namespace, name }, { uid }, { signal })
    await until('the next pod', async () => {
      const { status } = await get(context, namespace, set)
      return status?.state === 'Running' && status.activePod !== undefined && status.activePod !== name
    })
    return { stoppedMs: undefined }
  },
  remove: ({ api }, namespace, set) =>
    api.delete(migratingPods, { namespace, name: set }, { propagationPolicy: 'Foreground' }),
}

const get = ({ api, signal }: BenchContext, namespace: string, name: string): Promise<MigratingPod> =>
  api.get(migratingPods, { namespace, name }, { signal })

export const migratingPod: Bench = {
  name: 'migrating-pod',
  title: 'a MigratingPod whose pod is deleted, by the size of its memory (--sizes); beside a Deployment',
  trials: 10,
  needs: ['operator', 'playground'],
  run: async (context, samples) => {
    const cases = context.sizes.map((size): Moving & { readonly published: number | undefined } => ({
      published: published.get(size),
      name: `${size} GB`,
      // A save of a gigabyte takes longer than a second.
      subject: redis(`${size}gb`.replace('.', 'p'), size * 1e9, { interval: size < 1 ? '1s' : '5s' }),
    }))
    const inOwn = (work: (namespace: string) => Promise<void>) =>
      inNamespace(context.api, 'bench-migrating-pod', context.signal, work)
    await inOwn(namespace => ofDeployment(context, namespace, samples))
    for (const it of cases) await inOwn(namespace => moveTrials(context, namespace, it, byDeletion, samples))
    return samples.report('migrating-pod', baselinesOf(cases))
  },
}
