/** Migrations on real kubelets: a primary moves to a node of the user's choice with its memory, or stays where it is. */
import { describe, expect, it } from 'vitest'
import { type Migration, migrations } from '../../../src/api/migration.ts'
import { nodeReports, parseReport } from '../../../src/api/node-report.ts'
import { isKubeError } from '../../../src/kube/errors.ts'
import { pods } from '../../../src/kube/resources.ts'
import { patience } from '../../../src/migration/downtime.ts'
import { addressOf, counter, holderOf, restartsOf, saved, slotsOf } from '../../../zoo/slots.ts'
import { eventually } from '../../support/eventually.ts'
import { needsNodes } from '../lib/cluster.ts'
import { expectUnmoved, move, reached, read, reasonOf, scene, selectorOf } from '../lib/moving.ts'
import { scrapeAgent, scrapeOperator } from '../lib/scrape.ts'
import { createWorld, type World } from '../lib/world.ts'

const scrapes = (world: World, from: string, to: string) =>
  Promise.all([scrapeOperator(world), scrapeAgent(world, from), scrapeAgent(world, to)])

const dumps = 'understudy_generation_size_bytes_count'

/** Returns how many generations the sources of all nodes have saved. */
async function dumpsOfAll(world: World): Promise<number> {
  const { items } = await world.api.list(nodeReports, {})
  const all = await Promise.all(items.map(({ metadata }) => scrapeAgent(world, metadata.name)))
  return all.reduce((sum, samples) => sum + samples(dumps, { role: 'source' }), 0)
}

/** Returns the generation of the slot that its source has saved last. */
async function generationOn({ api, namespace }: World, node: string): Promise<number> {
  const { status } = parseReport(await api.get(nodeReports, { name: node }))
  const its = status?.slots.find(slot => slot.namespace === namespace && slot.role === 'source')
  if (its === undefined) throw new Error(`no source on ${node}`)
  return its.generation
}

/** Seconds from its first phase to its end. */
function spanOf({ phaseTimes = [] }: NonNullable<Migration['status']>): number {
  const times = phaseTimes.map(({ at }) => Date.parse(at))
  return (Math.max(...times) - Math.min(...times)) / 1000
}

describe.skipIf(needsNodes())('Migrations', () => {
  it('D16.moves: a primary goes to a node of choice with its memory, and its hot backup covers it there', async () => {
    await using world = await createWorld()
    const { set, lease, expected, primary, hot, free } = await scene(world)
    await move(world, 'there', {
      source: { name: primary.metadata.name },
      addedNodeSelector: selectorOf(free),
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
    expect(await restartsOf(set, primary)).toEqual({})
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
    await move(world, 'nowhere', {
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
    await expectUnmoved({ set, primary, expected })
  })

  it('MP-34 what operator and agents export is what the Migration and the reports say', async () => {
    await using world = await createWorld()
    const dumpsBefore = await dumpsOfAll(world)
    const { expected, primary, free, set } = await scene(world)
    const from = primary.spec?.nodeName ?? ''
    const nowhere = { source: { name: free.metadata.name } }
    const [operator, source, target] = await scrapes(world, from, free.metadata.name)
    await move(world, 'refused', nowhere)
    await reached(world, 'refused', 'Failed')
    await move(world, 'counted', {
      source: { name: primary.metadata.name },
      addedNodeSelector: selectorOf(free),
    })
    const { status = {} } = await reached(world, 'counted', 'Succeeded')
    const [operatorAfter, sourceAfter, targetAfter] = await scrapes(world, from, free.metadata.name)
    const more = (name: string, labels = {}) => operatorAfter(name, labels) - operator(name, labels)
    expect(more('understudy_migrations_ended_total', { result: 'succeeded', reason: 'Moved' })).toBe(1)
    expect(more('understudy_migrations_ended_total', { reason: 'SourceNotFound' })).toBe(1)
    expect(more('understudy_migration_downtime_seconds_count')).toBe(1)
    expect(more('understudy_migration_downtime_seconds_sum')).toBeCloseTo(
      (status.downtimeMilliseconds ?? 0) / 1000,
      6,
    )
    expect(more('understudy_migration_predicted_downtime_seconds_sum')).toBeCloseTo(
      (status.predictedDowntimeMilliseconds ?? 0) / 1000,
      6,
    )
    expect(more('understudy_migration_bytes_sum')).toBe(status.bytes)
    expect(more('understudy_migration_phase_seconds_sum')).toBeCloseTo(spanOf(status), 3)
    expect(operatorAfter('understudy_migrations')).toBe(0)
    expect(sourceAfter(dumps, { role: 'source' })).toBeGreaterThan(source(dumps, { role: 'source' }))
    expect(sourceAfter('understudy_checkpoint_frozen_seconds_count')).toBe(
      sourceAfter(dumps, { role: 'source' }),
    )
    // Each generation was dumped. Other sets are saved, too, and a dump whose pod moves meanwhile becomes no generation.
    const generation = await generationOn(world, free.metadata.name)
    expect(generation).toBeGreaterThan(0)
    expect((await dumpsOfAll(world)) - dumpsBefore).toBeGreaterThanOrEqual(generation)
    const restored = (name: string) => targetAfter(name) - target(name)
    expect(restored('understudy_restore_seconds_count')).toBeGreaterThan(0)
    expect(restored('understudy_restore_bytes_count')).toBe(restored('understudy_restore_seconds_count'))
    expect(restored('understudy_restore_bytes_sum')).toBeGreaterThanOrEqual(status.bytes ?? Infinity)
    const [after] = await slotsOf(set)
    if (after === undefined) throw new Error('the slot is gone')
    expect(await counter.read(addressOf(await holderOf(set, after)))).toBe(expected)
  })

  it('MP-32 a move that would be longer than asked for is made if a restart is longer still, and never with Live', async () => {
    await using world = await createWorld()
    const { set, expected, primary, free } = await scene(world)
    const asked = {
      source: { name: primary.metadata.name },
      addedNodeSelector: selectorOf(free),
      maxDowntime: '10ms',
    }
    await move(world, 'bounded', { ...asked, technique: 'Live' })
    const waits = async () => {
      const now = await read(world, 'bounded')
      expect(reasonOf(now)).toBe('DowntimeTooLong')
      return now.status?.generation ?? 0
    }
    const first = await eventually(waits)
    // Longer than the patience of LiveIfPossible.
    await eventually(async () => expect(await waits()).toBeGreaterThan(first + patience.generations + 2))
    const { status: refused } = await read(world, 'bounded')
    expect(refused?.predictedDowntimeMilliseconds).toBeGreaterThan(10)
    expect(refused?.acceptsDowntime).toBeUndefined()
    expect((await slotsOf(set))[0]?.holder.uid).toBe(primary.metadata.uid)
    await world.api.delete(migrations, { namespace: world.namespace, name: 'bounded' })
    await move(world, 'compared', { ...asked, technique: 'LiveIfPossible' })
    const { status } = await reached(world, 'compared', 'Succeeded')
    expect(status?.acceptsDowntime).toBe(true)
    expect(status?.downtimeMilliseconds).toBeGreaterThan(10)
    expect(status?.predictedDowntimeMilliseconds).toBeLessThanOrEqual(
      status?.predictedRestartMilliseconds ?? 0,
    )
    const [after] = await slotsOf(set)
    if (after === undefined) throw new Error('the slot is gone')
    expect(after.node).toBe(free.metadata.name)
    expect(await counter.read(addressOf(await holderOf(set, after)))).toBe(expected)
    expect(await restartsOf(set, primary)).toEqual({})
  })

  it('D16.refused: one that names no primary fails, and tells why', async () => {
    await using world = await createWorld()
    const { primary, hot } = await scene(world)
    await move(world, 'backup', { source: { name: hot.metadata.name } })
    await move(world, 'unknown', { source: { name: 'nobody' } })
    await move(world, 'another', { source: { name: primary.metadata.name, uid: hot.metadata.uid } })
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
