import { type MigratingPod, migratingPods } from '../../src/api/migrating-pod.ts'
import { apiVersionOf, pods } from '../../src/kube/resources.ts'
import type { BenchContext } from '../bench.ts'
import { untilLarge as until } from '../observe/pods.ts'
import { benchOfMoves } from './bench-moves.ts'
import type { Trigger } from './move.ts'

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

export const migratingPod = benchOfMoves({
  name: 'migrating-pod',
  title: 'a MigratingPod whose pod is deleted, by the size of its memory (--sizes); beside a Deployment',
  sizes: [0, 0.1, 0.2, 0.5, 1],
  writes: false,
  trigger: byDeletion,
})
