/** MigratingPods on real kubelets: one pod whose memory goes where it goes. */
import { setTimeout as pause } from 'node:timers/promises'
import { describe, expect, it } from 'vitest'
import { backupPodSets } from '../../../src/api/backuppodset.ts'
import { labels } from '../../../src/api/labels.ts'
import { type MigratingPod, type MigratingPodSpec, migratingPods } from '../../../src/api/migrating-pod.ts'
import { type MigrationSpec, migrations } from '../../../src/api/migration.ts'
import { leases, type Pod, podDisruptionBudgets, pods } from '../../../src/kube/resources.ts'
import { numberIn } from '../../../zoo/http-specimen.ts'
import { addressOf, counter } from '../../../zoo/slots.ts'
import { eventually } from '../../support/eventually.ts'
import { kubectl, needsNodes } from '../lib/cluster.ts'
import { alone, createWorld, restartsOf, type World } from '../lib/world.ts'

const create = async ({ api, namespace }: World, name: string, spec: Partial<MigratingPodSpec> = {}) => {
  const kind = { apiVersion: 'backup.example.com/v1alpha1', kind: 'MigratingPod' }
  const { template } = counter
  const body = { ...kind, metadata: { name }, spec: { template, checkpoint: { interval: '1s' }, ...spec } }
  await api.create(migratingPods, body, { namespace })
}

const podNamed = ({ api, namespace }: World, name: string): Promise<Pod> => api.get(pods, { namespace, name })

/** Waits until the pod runs, and another node has its memory. */
const saved = (world: World, name: string, activePod: string): Promise<MigratingPod> =>
  eventually(async () => {
    const now = await world.api.get(migratingPods, { namespace: world.namespace, name })
    expect(now.status, JSON.stringify(now.status)).toMatchObject({ state: 'Running', activePod })
    const conditions = now.status?.conditions?.map(({ type, status }) => `${type} ${status}`)
    expect(conditions, JSON.stringify(now.status)).toEqual(['Ready True', 'CheckpointReady True'])
    return now
  }, 180_000)

const move = ({ api, namespace }: World, name: string, spec: MigrationSpec) =>
  api.create(
    migrations,
    { apiVersion: 'backup.example.com/v1alpha1', kind: 'Migration', metadata: { namespace, name }, spec },
    { namespace },
  )

/** Counts once, and returns the number that the app answers. */
async function countAt(ip: string): Promise<number> {
  // A stopped pod answers nothing.
  const answer = await fetch(`http://${ip}:8080/`, { signal: AbortSignal.timeout(500) })
  return numberIn(asRecord(await answer.json()), 'count')
}

/** Returns what the app has in its memory: its number, its process id, and the name of the pod in which it was started. */
const peek = async (ip: string) => asRecord(await (await fetch(`http://${ip}:8080/peek`)).json())

const asRecord = (value: unknown): Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null ? { ...value } : {}

/**
 * A client that counts without a pause wherever the pod is, until the signal fires. Each number has to be greater than the one before: a
 * number that was answered is in the memory. Numbers may be missing, because answers get lost.
 */
async function countOn({ api, namespace }: World, name: string, signal: AbortSignal) {
  let last = 0
  let wrong: string | undefined
  const labelSelector = `${labels.set}=${name},${labels.type}=primary`
  while (!signal.aborted) {
    const { items } = await api.list(pods, { namespace, labelSelector })
    for (const { metadata, status } of items) {
      if (status?.podIP === undefined) continue
      try {
        while (!signal.aborted) {
          const value = await countAt(status.podIP)
          if (value <= last) wrong ??= `${value} after ${last} at ${metadata.name}`
          last = value
        }
      } catch {
        // The pod has stopped, or does not run yet.
      }
    }
    await pause(5)
  }
  return { last, wrong }
}

describe.skipIf(needsNodes())('MigratingPods', () => {
  it('D16.roams: it moves and moves back, and every number that a client was told is in its memory', async () => {
    await using world = await createWorld()
    await create(world, 'mover')
    await saved(world, 'mover', 'mover-0')
    const first = await podNamed(world, 'mover-0')
    const stop = new AbortController()
    const client = countOn(world, 'mover', stop.signal)
    try {
      const metadata = { labels: { shard: '7' } }
      const at = { namespace: world.namespace, name: 'mover-0' }
      await world.api.patch(pods, at, { type: 'merge', body: { metadata } })
      await eventually(async () => {
        const set = await world.api.get(backupPodSets, { namespace: world.namespace, name: 'mover' })
        expect(set.spec.template.metadata?.labels).toMatchObject(metadata.labels)
      })
      await move(world, 'there', { source: { name: 'mover-0' } })
      const there = await saved(world, 'mover', 'mover-1')
      const hostname = first.spec?.nodeName ?? ''
      expect(there.status?.node).not.toBe(hostname)
      expect(there.status?.lastMove?.reason).toBe('Migration')
      expect(there.status?.lastMove?.stateAge).toBeUndefined()
      await move(world, 'back', {
        source: { name: 'mover-1' },
        addedNodeSelector: { 'kubernetes.io/hostname': hostname },
      })
      const back = await saved(world, 'mover', 'mover-2')
      expect(back.status?.node).toBe(hostname)
    } finally {
      stop.abort()
    }
    const { last, wrong } = await client
    expect(wrong).toBeUndefined()
    expect(last).toBeGreaterThan(10)
    const now = await podNamed(world, 'mover-2')
    expect(await counter.read(addressOf(now))).toBeGreaterThanOrEqual(last)
    expect(restartsOf(now)).toBe(0)
    expect(now.metadata.labels).toMatchObject({ shard: '7' })
    await eventually(async () => {
      const { items } = await world.api.list(pods, { namespace: world.namespace })
      expect(items.map(({ metadata }) => metadata.name)).toEqual(['mover-2'])
    })
  })

  it('MP-02: its pod is deleted, and the next one continues elsewhere with all that a client was told', async () => {
    await using world = await createWorld()
    // Long enough that only the last save can have what the client counts.
    await create(world, 'ended', { checkpoint: { interval: '60s' } })
    await saved(world, 'ended', 'ended-0')
    const first = await podNamed(world, 'ended-0')
    const pid = numberIn(await peek(addressOf(first)), 'pid')
    const stop = new AbortController()
    const client = countOn(world, 'ended', stop.signal)
    try {
      await eventually(async () =>
        expect(numberIn(await peek(addressOf(first)), 'count')).toBeGreaterThan(50),
      )
      await world.api.delete(pods, { namespace: world.namespace, name: 'ended-0' })
      const now = await saved(world, 'ended', 'ended-1')
      expect(now.status?.node).not.toBe(first.spec?.nodeName)
    } finally {
      stop.abort()
    }
    const { last, wrong } = await client
    expect(wrong).toBeUndefined()
    expect(last).toBeGreaterThan(10)
    const next = await podNamed(world, 'ended-1')
    const after = await peek(addressOf(next))
    expect(numberIn(after, 'count')).toBeGreaterThanOrEqual(last)
    expect(after).toMatchObject({ host: 'ended-0', pid })
    expect(restartsOf(next)).toBe(0)
  })

  it('MP-03: kubectl drain of its node ends, and it continues elsewhere with all that a client was told', async () => {
    await using world = await createWorld()
    await alone(world)
    await create(world, 'drained', {
      checkpoint: { interval: '60s' },
      // A busy machine must not look like a lost node.
      failover: { nodeTimeout: '60s', fencing: 'None' },
    })
    const { status } = await saved(world, 'drained', 'drained-0')
    const node = status?.node ?? ''
    await eventually(async () => {
      const { items } = await world.api.list(podDisruptionBudgets, { namespace: world.namespace })
      expect(items.length).toBeGreaterThan(0)
    })
    const stop = new AbortController()
    const client = countOn(world, 'drained', stop.signal)
    try {
      await kubectl('drain', node, '--ignore-daemonsets', '--delete-emptydir-data', '--timeout=300s')
      const now = await saved(world, 'drained', 'drained-1')
      expect(now.status?.node).not.toBe(node)
      expect(now.status?.lastMove).toMatchObject({ from: 'drained-0', reason: 'Migration' })
    } finally {
      stop.abort()
      await kubectl('uncordon', node)
    }
    const { last, wrong } = await client
    expect(wrong).toBeUndefined()
    const next = await podNamed(world, 'drained-1')
    expect(numberIn(await peek(addressOf(next)), 'count')).toBeGreaterThanOrEqual(last)
    expect(restartsOf(next)).toBe(0)
  })

  it('MP-07: if it is deleted, its pod, its set and its slot go, and nothing is left', async () => {
    await using world = await createWorld()
    const { api, namespace } = world
    await create(world, 'short')
    await saved(world, 'short', 'short-0')
    await api.delete(migratingPods, { namespace, name: 'short' }, { propagationPolicy: 'Background' })
    await eventually(async () => {
      const left = await Promise.all(
        [
          api.list(pods, { namespace }),
          api.list(backupPodSets, { namespace }),
          api.list(leases, { namespace }),
        ].map(async each => (await each).items.map(({ metadata }) => metadata.name)),
      )
      expect(left).toEqual([[], [], []])
    }, 120_000)
  })
})
