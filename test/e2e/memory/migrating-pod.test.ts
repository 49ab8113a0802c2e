/** MigratingPods on real kubelets: one pod whose memory goes where it goes. */
import { describe, expect, it } from 'vitest'
import { backupPodSets } from '../../../src/api/backuppodset.ts'
import { migratingPods } from '../../../src/api/migrating-pod.ts'
import { servingReasons } from '../../../src/api/pod-contract.ts'
import { leases, podDisruptionBudgets, pods } from '../../../src/kube/resources.ts'
import { numberIn } from '../../../zoo/http-specimen.ts'
import { addressOf, counter } from '../../../zoo/slots.ts'
import { eventually } from '../../support/eventually.ts'
import { kubectl, needsNodes } from '../lib/cluster.ts'
import { countOn, create, peek, podNamed, saved } from '../lib/migrating-pods.ts'
import { move } from '../lib/moving.ts'
import { alone, createWorld, restartsOf } from '../lib/world.ts'

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

  it('MP-02: its pod is deleted, serves on until the next one runs, and that one continues elsewhere with all that a client was told', async () => {
    await using world = await createWorld()
    const { api, namespace } = world
    const { template } = counter
    await create(world, 'ended', {
      // Long enough that only the last save can have what the client counts.
      checkpoint: { interval: '60s' },
      template: {
        ...template,
        spec: { containers: [], ...template.spec, terminationGracePeriodSeconds: 30 },
      },
    })
    await saved(world, 'ended', 'ended-0')
    const pid = numberIn(await peek(addressOf(await podNamed(world, 'ended-0'))), 'pid')
    const stop = new AbortController()
    const client = countOn(world, 'ended', stop.signal)
    try {
      // The second one has been made to take over.
      for (const number of [0, 1]) {
        const name = `ended-${number}`
        const next = `ended-${number + 1}`
        const before = await podNamed(world, name)
        const counted = numberIn(await peek(addressOf(before)), 'count')
        await eventually(async () =>
          expect(numberIn(await peek(addressOf(before)), 'count')).toBeGreaterThan(counted + 50),
        )
        const deletedAt = Date.now()
        await api.delete(pods, { namespace, name })
        const diedAt = await eventually(async () => {
          const { status } = await podNamed(world, name)
          const died = status?.conditions?.find(({ reason }) => reason === servingReasons.died)
          expect(died, JSON.stringify(status?.conditions)).toBeDefined()
          return Date.parse(String(died?.lastTransitionTime))
        })
        const now = await saved(world, 'ended', next)
        expect(now.status?.node).not.toBe(before.spec?.nodeName)
        const [app] = (await podNamed(world, next)).status?.containerStatuses ?? []
        const startedAt = Date.parse(String(app?.state?.running?.startedAt))
        // A busy machine may need longer for a pod than the hook lasts.
        expect(diedAt).toBeGreaterThanOrEqual(Math.min(startedAt, deletedAt + 4_000))
      }
    } finally {
      stop.abort()
    }
    const { last, wrong } = await client
    expect(wrong).toBeUndefined()
    expect(last).toBeGreaterThan(100)
    const third = await podNamed(world, 'ended-2')
    const after = await peek(addressOf(third))
    expect(numberIn(after, 'count')).toBeGreaterThanOrEqual(last)
    expect(after).toMatchObject({ host: 'ended-0', pid })
    expect(restartsOf(third)).toBe(0)
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

  it('D16.suspended: no pod of it runs, and when it resumes it continues elsewhere with all that a client was told', async () => {
    await using world = await createWorld()
    const { api, namespace } = world
    // Long enough that only the last save can have what the client counts.
    await create(world, 'asleep', { checkpoint: { interval: '60s' } })
    await saved(world, 'asleep', 'asleep-0')
    const first = await podNamed(world, 'asleep-0')
    const pid = numberIn(await peek(addressOf(first)), 'pid')
    const suspend = (value: boolean) =>
      api.patch(
        migratingPods,
        { namespace, name: 'asleep' },
        { type: 'merge', body: { spec: { suspend: value } } },
      )
    const stop = new AbortController()
    const client = countOn(world, 'asleep', stop.signal)
    try {
      await eventually(async () =>
        expect(numberIn(await peek(addressOf(first)), 'count')).toBeGreaterThan(50),
      )
      await suspend(true)
      await eventually(async () => {
        const { status } = await api.get(migratingPods, { namespace, name: 'asleep' })
        expect(status, JSON.stringify(status)).toMatchObject({ state: 'Suspended' })
        expect((await api.list(pods, { namespace })).items).toEqual([])
      }, 120_000)
      await eventually(async () => {
        const { status } = await api.get(backupPodSets, { namespace, name: 'asleep' })
        const [kept] = status?.retainedSlots ?? []
        expect(kept, JSON.stringify(status)).toMatchObject({ slot: 0, pod: 'asleep-0' })
        expect(kept).not.toHaveProperty('until')
        expect(kept?.keptOn).toContain(first.spec?.nodeName)
        expect(kept?.keptOn.length).toBeGreaterThan(1)
        const word = status?.conditions?.find(({ type }) => type === 'Suspended')
        expect(word, JSON.stringify(status)).toMatchObject({ status: 'True', reason: 'Suspended' })
      }, 60_000)
      await suspend(false)
      const now = await saved(world, 'asleep', 'asleep-1')
      expect(now.status?.node).not.toBe(first.spec?.nodeName)
    } finally {
      stop.abort()
    }
    const { last, wrong } = await client
    expect(wrong).toBeUndefined()
    expect(last).toBeGreaterThan(50)
    const next = await podNamed(world, 'asleep-1')
    const after = await peek(addressOf(next))
    expect(numberIn(after, 'count')).toBeGreaterThanOrEqual(last)
    expect(after).toMatchObject({ host: 'asleep-0', pid })
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
