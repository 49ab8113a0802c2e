/** Migrations on real kubelets: a primary moves to a node of the user's choice with its memory, or stays where it is. */
import { describe, expect, it } from 'vitest'
import { type Migration, type MigrationSpec, migrations, outcomeOf } from '../../../src/api/migration.ts'
import { isKubeError } from '../../../src/kube/errors.ts'
import { nodes, pods } from '../../../src/kube/resources.ts'
import { addressOf, counter, holderOf, restartsOf, saved, slotsOf } from '../../../zoo/slots.ts'
import { eventually } from '../../support/eventually.ts'
import { needsNodes } from '../lib/cluster.ts'
import { coveredCounter } from '../lib/covered-counter.ts'
import { createWorld, type World } from '../lib/world.ts'

const create = ({ api, namespace }: World, name: string, spec: MigrationSpec) =>
  api.create(
    migrations,
    { apiVersion: 'backup.example.com/v1alpha1', kind: 'Migration', metadata: { namespace, name }, spec },
    { namespace },
  )

const read = ({ api, namespace }: World, name: string) => api.get(migrations, { namespace, name })

const reasonOf = (migration: Migration) => outcomeOf(migration)?.reason

const reached = (world: World, name: string, phase: string): Promise<Migration> =>
  eventually(async () => {
    const now = await read(world, name)
    expect(now.status?.phase, JSON.stringify(now.status)).toBe(phase)
    return now
  })

/** A counter with one hot backup, and a node that has neither. */
async function scene(world: World) {
  const { set, lease, expected, primary } = await coveredCounter(world)
  const hot = await world.api.get(pods, { namespace: world.namespace, name: lease.heir?.name ?? '' })
  const taken = [primary.spec?.nodeName, hot.spec?.nodeName]
  const free = (await world.api.list(nodes, {})).items.find(
    ({ metadata, spec }) => !taken.includes(metadata.name) && !spec?.unschedulable && !spec?.taints?.length,
  )
  if (free === undefined) throw new Error('every node is taken')
  return { set, lease, expected, primary, hot, free }
}

describe.skipIf(needsNodes())('Migrations', () => {
  it('D16.moves: a primary goes to a node of choice with its memory, and its hot backup covers it there', async () => {
    await using world = await createWorld()
    const { set, lease, expected, primary, hot, free } = await scene(world)
    const label = 'kubernetes.io/hostname'
    await create(world, 'there', {
      source: { name: primary.metadata.name },
      addedNodeSelector: { [label]: free.metadata.labels?.[label] ?? '' },
    })
    const ended = await reached(world, 'there', 'Succeeded')
    expect(ended.status).toMatchObject({
      source: { uid: primary.metadata.uid, node: primary.spec?.nodeName, set: 'moving', slot: 0 },
      target: { node: free.metadata.name },
    })
    expect(ended.status?.downtimeMilliseconds).toBeGreaterThan(0)
    const [after] = await slotsOf(set)
    expect(after).toMatchObject({ incarnation: lease.incarnation, node: free.metadata.name })
    if (after === undefined) throw new Error('the slot is gone')
    const moved = await holderOf(set, after)
    expect(await counter.read(addressOf(moved))).toBe(expected)
    await saved(set)
    expect((await slotsOf(set))[0]?.heir?.uid).toBe(hot.metadata.uid)
    expect(await restartsOf(set)).toEqual({})
    await eventually(async () => {
      const gone = await world.api
        .get(pods, { namespace: world.namespace, name: primary.metadata.name })
        .catch((error: unknown) => isKubeError(error, 'NotFound'))
      expect(gone).toBe(true)
    })
  })

  it('D16.calls-off: one that is deleted leaves the primary as it is, and the pod that was made for it goes', async () => {
    await using world = await createWorld()
    const { set, expected, primary } = await scene(world)
    await create(world, 'nowhere', {
      source: { name: primary.metadata.name },
      addedNodeSelector: { 'example.com/no-such': 'label' },
    })
    await eventually(async () => {
      const now = await read(world, 'nowhere')
      expect([now.status?.phase, reasonOf(now)]).toEqual(['Reserving', 'Unschedulable'])
    })
    await world.api.delete(migrations, { namespace: world.namespace, name: 'nowhere' })
    await eventually(async () => {
      const { items } = await world.api.list(pods, { namespace: world.namespace })
      expect(items.filter(({ metadata }) => metadata.deletionTimestamp === undefined)).toHaveLength(2)
    })
    const [lease] = await slotsOf(set)
    expect(lease?.holder.uid).toBe(primary.metadata.uid)
    expect(await counter.read(addressOf(primary))).toBe(expected)
    expect(await restartsOf(set)).toEqual({})
  })

  it('D16.refused: one that names no primary fails, and tells why', async () => {
    await using world = await createWorld()
    const { primary, hot } = await scene(world)
    await create(world, 'backup', { source: { name: hot.metadata.name } })
    await create(world, 'unknown', { source: { name: 'nobody' } })
    await create(world, 'another', { source: { name: primary.metadata.name, uid: hot.metadata.uid } })
    for (const [name, reason] of [
      ['backup', 'NotAPrimary'],
      ['unknown', 'SourceNotFound'],
      ['another', 'SourceReplaced'],
    ] as const)
      expect(reasonOf(await reached(world, name, 'Failed'))).toBe(reason)
    await expect(
      world.api.patch(
        migrations,
        { namespace: world.namespace, name: 'backup' },
        { type: 'merge', body: { spec: { source: { name: primary.metadata.name } } } },
      ),
    ).rejects.toThrow(/cannot be changed/)
  })
})
