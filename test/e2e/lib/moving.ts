/** Migrations in end-to-end tests. */
import { expect } from 'vitest'
import { type Migration, type MigrationSpec, migrations, outcomeOf } from '../../../src/api/migration.ts'
import { type Node, nodes, pods } from '../../../src/kube/resources.ts'
import { addressOf, counter, restartsOf, slotsOf } from '../../../zoo/slots.ts'
import { eventually } from '../../support/eventually.ts'
import { coveredCounter } from './covered-counter.ts'
import type { World } from './world.ts'

export const move = ({ api, namespace }: World, name: string, spec: MigrationSpec) =>
  api.create(
    migrations,
    { apiVersion: 'backup.example.com/v1alpha1', kind: 'Migration', metadata: { namespace, name }, spec },
    { namespace },
  )

export const read = ({ api, namespace }: World, name: string) => api.get(migrations, { namespace, name })

export const reasonOf = (migration: Migration) => outcomeOf(migration)?.reason

export const reached = (world: World, name: string, phase: string): Promise<Migration> =>
  eventually(async () => {
    const now = await read(world, name)
    expect(now.status?.phase, JSON.stringify(now.status)).toBe(phase)
    return now
  })

const hostname = 'kubernetes.io/hostname'

/** Returns the labels that only this node has. */
export const selectorOf = ({ metadata }: Node) => ({ [hostname]: metadata.labels?.[hostname] ?? '' })

/** A counter with one hot backup, and a node that has neither. */
export async function scene(world: World) {
  const { set, lease, expected, primary } = await coveredCounter(world)
  const hot = await world.api.get(pods, { namespace: world.namespace, name: lease.heir?.name ?? '' })
  const taken = [primary.spec?.nodeName, hot.spec?.nodeName]
  // A node that an earlier test has cut off may still have a taint.
  const free = await eventually(async () => {
    const found = (await world.api.list(nodes, {})).items.find(
      ({ metadata, spec }) => !taken.includes(metadata.name) && !spec?.unschedulable && !spec?.taints?.length,
    )
    if (found === undefined) throw new Error('every node is taken')
    return found
  })
  return { set, lease, expected, primary, hot, free }
}

/** The primary has its slot and its memory, and no container has been restarted. */
export async function expectUnmoved({
  set,
  primary,
  expected,
}: Pick<Awaited<ReturnType<typeof scene>>, 'set' | 'primary' | 'expected'>): Promise<void> {
  const [lease] = await slotsOf(set)
  expect(lease?.holder.uid).toBe(primary.metadata.uid)
  expect(await counter.read(addressOf(primary))).toBe(expected)
  expect(await restartsOf(set)).toEqual({})
}
