import { expect } from 'vitest'
import { migrations } from '../../../src/api/migration.ts'
import { isKubeError } from '../../../src/kube/errors.ts'
import { podDisruptionBudgets } from '../../../src/kube/resources.ts'
import { eventually } from '../../support/eventually.ts'
import { kubectl } from './cluster.ts'
import type { World } from './world.ts'

/** A set with memory whose disruption budget is weakened, whose node is cordoned, and that then lets its primary be evicted. */
export async function provokeDrain(world: World): Promise<void> {
  const { api, namespace } = world
  const set = await world.createSet('drained', { replicas: 1, hotBackups: 1, checkpoint: {} })
  const ref = { namespace, name: 'drained-primaries' }
  const budget = () => api.get(podDisruptionBudgets, ref)
  const strong = await eventually(async () => (await budget()).spec)
  await api.patch(podDisruptionBudgets, ref, { type: 'merge', body: { spec: { minAvailable: 0 } } })
  await eventually(async () => expect((await budget()).spec).toEqual(strong))
  const [primary] = await eventually(async () => {
    expect((await set.get()).status?.slots?.[0]?.protection).toMatch(/Frozen|Staged/)
    return set.pods('primary')
  })
  const node = primary?.spec?.nodeName ?? ''
  await kubectl('cordon', node)
  try {
    await eventually(async () => {
      const { items } = await api.list(migrations, { namespace })
      expect(items.map(({ metadata }) => metadata.name)).toContain(`${primary?.metadata.name}-drain-1`)
    })
  } finally {
    await kubectl('uncordon', node)
  }
  await set.patch({ checkpoint: { drain: 'Evict' } })
  await eventually(async () => {
    const isGone = await budget().catch((error: unknown) => isKubeError(error, 'NotFound'))
    expect(isGone).toBe(true)
  })
}
