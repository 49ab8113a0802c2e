import { readdir, truncate } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { AgentError } from '../../api/agent-errors.ts'
import { annotations, labels } from '../../api/labels.ts'
import {
  holdInitContainer,
  podConditions,
  probesAnnotation,
  savedAnnotation,
  spoiledReason,
} from '../../api/pod-contract.ts'
import type { SlotLease } from '../../api/slot-lease.ts'
import type { Pod } from '../../kube/resources.ts'
import type { Probe } from '../../probe/probe.ts'
import {
  createFakeCluster,
  createFakeMemory,
  dispose,
  type FakeAgent,
  type FakeCluster,
  type FakeMemory,
  startFakeAgent,
} from './testing/node.ts'
import { lease, policy, usableAt } from './testing/snapshots.ts'

const app = { name: 'app', image: 'web:1', ports: [{ containerPort: 80 }] }

/** Marks that the operator writes on pods, so that agents need to know nothing about a set's template. */
const marks = (probes?: object) => ({
  labels: { [labels.restoreHash]: policy().restoreHash },
  annotations: {
    [savedAnnotation]: 'app',
    ...(probes && { [probesAnnotation]: JSON.stringify({ app: probes }) }),
  },
})

function podOf(
  name: string,
  type: string,
  over: { containerId?: string; deleted?: boolean; probes?: object } = {},
): Pod {
  const isUnderstudy = type !== 'primary'
  const marked = marks(isUnderstudy ? over.probes : undefined)
  return {
    metadata: {
      name,
      namespace: 'default',
      uid: `uid-${name}`,
      resourceVersion: '1',
      labels: {
        ...{ [labels.set]: 'web', [labels.type]: type, ...marked.labels },
        ...(isUnderstudy ? {} : { [labels.slot]: '0' }),
      },
      annotations: marked.annotations,
      ...(over.deleted ? { deletionTimestamp: '2030-01-01T00:00:00Z' } : {}),
    },
    spec: {
      containers: [isUnderstudy ? app : { ...app, ...over.probes }],
      ...(isUnderstudy ? { initContainers: [{ name: holdInitContainer }] } : {}),
    },
    status: {
      phase: 'Running',
      podIP: isUnderstudy ? '10.0.0.2' : '10.0.0.1',
      conditions: [{ type: 'Ready', status: isUnderstudy ? 'False' : 'True' }],
      containerStatuses: [
        {
          ...{ name: 'app', image: 'web:1', imageID: 'sha256:1', ready: true, restartCount: 0 },
          containerID: over.containerId ?? `containerd://${name}`,
          state: { running: { startedAt: '2020-01-01T00:00:00Z' } },
        },
      ],
    },
  }
}

const atFirst = (): SlotLease =>
  lease({ holders: ['b'], heir: { name: 'h', uid: 'uid-h', ip: '10.0.0.2' }, node: 'a' })
const called = (): SlotLease =>
  lease({ holder: { name: 'h', uid: 'uid-h' }, epoch: 2, node: 'b', heir: undefined, holders: [] })

describe('the agents of two nodes', () => {
  let cluster: FakeCluster
  let a: FakeMemory
  let b: FakeMemory
  const agents = new Set<FakeAgent>()
  const start = async (
    node: string,
    memory: FakeMemory,
    ...rest: Parameters<typeof startFakeAgent> extends [unknown, unknown, unknown, ...infer R] ? R : never
  ) => {
    const agent = await startFakeAgent(cluster, node, memory, ...rest)
    agents.add(agent)
    return agent
  }
  const stop = async (agent: FakeAgent) => {
    agents.delete(agent)
    await agent.stop()
  }
  const serving = (node: string, name: string) => cluster.condition(node, name, podConditions.serving)
  const frozen = () => b.clones.get('uid-h')
  /** Resolves when the present memory is frozen in the understudy and the holder's report says so. */
  const untilNewerElsewhere = () =>
    vi.waitFor(
      () =>
        expect(cluster.condition('b', 'h', podConditions.understudy)).toMatchObject({
          reason: 'RestoreFailed',
          message: expect.stringContaining('newer memory'),
        }),
      { timeout: 10_000 },
    )
  const untilFrozen = (word: string) =>
    vi.waitFor(
      () => {
        expect(frozen()?.word).toBe(word)
        expect(cluster.reports.get('b')?.status?.slots[0]?.usable).toBe('Frozen')
      },
      { timeout: 10_000 },
    )

  beforeEach(async () => {
    cluster = createFakeCluster(['a', 'b', 'c'])
    a = await createFakeMemory()
    b = await createFakeMemory()
    a.running.set('uid-p', 'one')
    cluster.put('a', podOf('p', 'primary'))
    cluster.put('b', podOf('h', 'hotbackup'))
    cluster.setLease(atFirst())
  })
  afterEach(async () => {
    await Promise.all([...agents].map(stop))
    await Promise.all([dispose(a), dispose(b)])
  })

  it('D6.refused: what cannot be saved is not dumped, and the report says what helps', async () => {
    const detail = 'node: io_uring'
    a.obstacles.set('uid-p', [{ kind: 'IoUring', container: 'app', pid: 1, detail }])
    await start('a', a)
    await start('b', b)
    await vi.waitFor(() =>
      expect(cluster.reports.get('a')?.status?.slots[0]).toMatchObject({
        reason: 'Unsupported',
        message: expect.stringMatching(/container app has an io_uring \(node: io_uring\): leave seccomp at/),
      }),
    )
    expect(a.counts.dumps).toBe(0)
  })

  describe('a checkpoint that has begun comes to its end', () => {
    const primary = (ready: boolean) => {
      const pod = podOf('p', 'primary')
      return {
        ...pod,
        status: { ...pod.status, conditions: [{ type: 'Ready', status: ready ? 'True' : 'False' }] },
      }
    }
    const generation = () => cluster.reports.get('a')?.status?.slots[0]?.generation

    it('D7.when: also where standing still for it makes the pod unready, which is told until it is ready again', async () => {
      a.duringDump = async () => {
        cluster.put('a', primary(false))
        await sleep(20)
      }
      await start('a', a)
      await vi.waitFor(() =>
        expect(cluster.reports.get('a')?.status?.slots[0]).toMatchObject({
          ...{ generation: 1, reason: 'NotAnswering' },
          message: expect.stringMatching(/its pod is not ready/),
        }),
      )
      // The agent saves nothing while the app does not serve.
      await sleep(300)
      expect(a.counts.dumps).toBe(1)
      cluster.put('a', primary(true))
      await vi.waitFor(() => expect(generation()).toBe(2))
    })

    it('also where its pace is edited meanwhile, which counts for the next one', async () => {
      cluster.writePolicy({ intervalMs: 3_600_000 })
      a.duringDump = async () => {
        a.duringDump = () => undefined
        cluster.writePolicy({ intervalMs: 1_800_000, keep: 3, maxFreezePercent: 1 })
        await sleep(20)
      }
      await start('a', a)
      await vi.waitFor(() => expect([a.counts.dumps, generation()]).toEqual([1, 1]), { timeout: 5_000 })
      cluster.writePolicy({})
      await vi.waitFor(() => expect(generation()).toBeGreaterThan(2), { timeout: 5_000 })
    })
  })

  it('D7.policy: where the policy becomes unknown, no memory is lost, and no failover', async () => {
    const agentA = await start('a', a)
    const agentB = await start('b', b)
    await untilFrozen('one')
    cluster.writePolicy(undefined)
    // Also by agents that have not seen the policy before, as after an update.
    await stop(agentA)
    await stop(agentB)
    const again = await start('a', a)
    await start('b', b)
    const slotOf = (node: string) => cluster.reports.get(node)?.status?.slots[0]
    await vi.waitFor(() => expect(slotOf('b')).toMatchObject({ usable: 'Frozen', reason: 'PolicyUnknown' }))
    const { dumps } = a.counts
    a.running.set('uid-p', 'two')
    await sleep(500)
    // The agents begin no work whose pace and limits are unknown, and remove nothing.
    expect([a.counts.dumps, b.counts.discards, frozen()?.word]).toEqual([dumps, 0, 'one'])
    expect(slotOf('a')).toMatchObject({ role: 'source', generation: dumps, reason: 'PolicyUnknown' })
    again.die('uid-p')
    await vi.waitFor(() => expect(serving('a', 'p')).toMatchObject({ status: 'False', reason: 'Died' }))
    cluster.setLease({ ...called(), holders: ['a'] })
    await vi.waitFor(() => expect(serving('b', 'h')).toMatchObject({ status: 'True' }))
    expect(b.running.get('uid-h')).toBe('one')
    // An operator that writes policies leads again.
    cluster.writePolicy({})
    await vi.waitFor(() => expect(slotOf('b')?.generation).toBeGreaterThan(dumps), { timeout: 5_000 })
    expect(slotOf('b')?.reason).toBeUndefined()
  })

  it('D7.deaths: bring a primary back with its memory when it dies', async () => {
    const [agentA] = [await start('a', a), await start('b', b)]
    await untilFrozen('one')
    a.running.set('uid-p', 'two')
    await untilFrozen('two')
    expect([...a.watches.values()].map(({ heir }) => heir)).toEqual(['10.0.0.2'])

    a.running.delete('uid-p')
    agentA.die('uid-p')
    expect(serving('a', 'p')).toMatchObject({ status: 'False', reason: 'Died' })
    // The agent neither saves nor trusts the app that the kubelet starts in its place.
    a.running.set('uid-p', 'impostor')
    cluster.put('a', {
      ...podOf('p', 'primary', { containerId: 'containerd://again' }),
      status: {
        ...podOf('p', 'primary', { containerId: 'containerd://again' }).status,
        conditions: cluster.pod('a', 'p')?.status?.conditions ?? [],
      },
    })
    cluster.setLease(called())
    await vi.waitFor(() => expect(serving('b', 'h')).toMatchObject({ status: 'True', reason: 'OnStage' }))
    expect(b.running.get('uid-h')).toBe('two')
    expect(serving('b', 'h')?.message).toMatch(/^epoch 2: app is containerd:\/\/h; generation \d+ of \S+Z$/)
    const from = { namespace: 'default', name: 'p', uid: 'uid-p', ip: '10.0.0.1' }
    await vi.waitFor(() => expect(b.parted).toEqual([{ pod: 'h', from }]))
  })

  it('D7.fetch: bring memory to a pod that is called where none is, and lead connections there', async () => {
    const c = await createFakeMemory()
    const agentA = await start('a', a)
    await start('b', b)
    await start('c', c)
    await untilFrozen('one')
    cluster.put('c', podOf('r', 'coldbackup'))
    a.running.delete('uid-p')
    agentA.die('uid-p')
    a.running.set('uid-p', 'impostor')
    const again = podOf('p', 'primary', { containerId: 'containerd://again' })
    const conditions = cluster.pod('a', 'p')?.status?.conditions ?? []
    cluster.put('a', { ...again, status: { ...again.status, conditions } })
    const successor = { holder: { name: 'r', uid: 'uid-r' }, node: 'c', ip: '10.0.0.7', holders: ['b'] }
    cluster.setLease({ ...called(), ...successor })
    await vi.waitFor(() => expect(serving('c', 'r')).toMatchObject({ status: 'True', reason: 'OnStage' }), {
      timeout: 10_000,
    })
    expect(c.running.get('uid-r')).toBe('one')
    await vi.waitFor(() => expect([...a.watches.values()].map(({ heir }) => heir)).toEqual(['10.0.0.7']))
    for (const agent of [...agents]) await stop(agent)
    await dispose(c)
  })

  it('fetch newer memory before they go on stage with what lies there, where more than one generation would be lost', async () => {
    const c = await createFakeMemory()
    cluster.setLease({ ...atFirst(), holders: ['b', 'c'] })
    const agentA = await start('a', a)
    const agentB = await start('b', b)
    await start('c', c)
    await untilFrozen('one')
    await stop(agentB)
    const generationAt = (node: string) => cluster.reports.get(node)?.status?.slots[0]?.generation ?? 0
    const before = generationAt('b')
    a.running.set('uid-p', 'two')
    await vi.waitFor(() => expect(generationAt('c')).toBeGreaterThan(before + 2), { timeout: 10_000 })
    await stop(agentA)
    cluster.setLease({ ...called(), holders: ['c'] })
    await start('b', b)
    await vi.waitFor(() => expect(serving('b', 'h')).toMatchObject({ status: 'True', reason: 'OnStage' }), {
      timeout: 10_000,
    })
    expect(b.running.get('uid-h')).toBe('two')
    for (const agent of [...agents]) await stop(agent)
    await dispose(c)
  }, 30_000)

  it('D7.newest: do not go on stage with what lies there, if the Lease asks for newer memory that cannot be fetched', async () => {
    await start('a', a)
    const agentB = await start('b', b)
    await untilFrozen('one')
    await stop(agentB)
    for (const agent of [...agents]) await stop(agent)
    const least = { epoch: 1, generation: 900, takenAt: 0 }
    cluster.setLease({ ...called(), atLeast: least })
    await start('b', b)
    await untilNewerElsewhere()
    expect(b.running.get('uid-h')).toBeUndefined()
    cluster.setLease(called())
    await vi.waitFor(() => expect(serving('b', 'h')).toMatchObject({ status: 'True', reason: 'OnStage' }), {
      timeout: 10_000,
    })
    expect(b.running.get('uid-h')).toBe('one')
  }, 30_000)

  it('D7.newest: do not go on stage if the Lease asks for newer memory in the last moment', async () => {
    await start('a', a)
    const agentB = await start('b', b)
    await untilFrozen('one')
    await stop(agentB)
    for (const agent of [...agents]) await stop(agent)
    const lease = { ...called(), atLeast: { epoch: 1, generation: 900, takenAt: 0 } }
    cluster.setLease(called())
    // The agent's cache has the Lease as it was before.
    cluster.setLease(lease, false)
    await start('b', b)
    await untilNewerElsewhere()
    expect(b.running.get('uid-h')).toBeUndefined()
  }, 30_000)

  describe('hand a slot over', () => {
    const asked = () => ({ ...atFirst(), handover: 'uid-h' })
    const saidBy = (node: string) => cluster.reports.get(node)?.status?.slots[0]
    const untilHandedOver = () =>
      vi.waitFor(
        () => {
          expect([saidBy('a')?.final, saidBy('b')?.final]).toEqual([true, true])
          expect(saidBy('b')?.takenAt).toBe(saidBy('a')?.takenAt)
        },
        { timeout: 10_000 },
      )

    it('D3.stands-still: the primary stands from its last generation on, until its successor is called', async () => {
      await start('a', a)
      await start('b', b)
      await untilFrozen('one')
      expect([saidBy('a')?.final, saidBy('b')?.final]).toEqual([undefined, undefined])
      a.running.set('uid-p', 'two')
      cluster.setLease(asked())
      await untilHandedOver()
      expect([...a.stops]).toEqual(['handover-uid-p'])
      // All steps that can fail are done: the last generation is frozen.
      expect(frozen()?.word).toBe('two')
      const { dumps } = a.counts
      cluster.setLease(called())
      await vi.waitFor(() => expect(serving('b', 'h')).toMatchObject({ status: 'True', reason: 'OnStage' }))
      await vi.waitFor(() => expect(serving('a', 'p')).toMatchObject({ status: 'False', reason: 'Died' }))
      expect(b.running.get('uid-h')).toBe('two')
      expect(a.running.has('uid-p')).toBe(false)
      // Never resumed: it would have run beside its successor.
      expect([...a.stops]).toEqual(['handover-uid-p'])
      expect(a.counts.dumps).toBe(dumps)
    })

    it('nor does it go on where it is ended for that first', async () => {
      await start('a', a)
      await start('b', b)
      await untilFrozen('one')
      cluster.setLease(asked())
      await untilHandedOver()
      cluster.setLease({ ...asked(), ending: 'uid-p' })
      await vi.waitFor(() => expect(serving('a', 'p')).toMatchObject({ status: 'False', reason: 'Died' }))
      expect([...a.stops]).toEqual(['handover-uid-p'])
    })

    it('stands on where its agent ends, for an operator counts on it; the next one takes that over', async () => {
      const agentA = await start('a', a)
      await start('b', b)
      await untilFrozen('one')
      cluster.setLease(asked())
      await untilHandedOver()
      await stop(agentA)
      expect([...a.stops]).toEqual(['handover-uid-p'])
      expect(saidBy('a')).toMatchObject({ final: true, standsForSeconds: expect.any(Number) })
      await start('a', a)
      await untilHandedOver()
      expect([...a.stops]).toEqual(['handover-uid-p'])
      cluster.setLease(called())
      await vi.waitFor(() => expect(serving('a', 'p')).toMatchObject({ status: 'False', reason: 'Died' }))
      expect([...a.stops]).toEqual(['handover-uid-p'])
    })

    it('and the next one lets it go on when it is not to be handed over any more', async () => {
      const agentA = await start('a', a)
      await start('b', b)
      await untilFrozen('one')
      cluster.setLease(asked())
      await untilHandedOver()
      await stop(agentA)
      cluster.setLease(atFirst())
      await start('a', a)
      await vi.waitFor(() => expect([...a.stops]).toEqual([]))
    })

    it('also a primary that was an understudy: the next agent does not resume it', async () => {
      const agentA = await start('a', a)
      const agentB = await start('b', b)
      await untilFrozen('one')
      cluster.setLease(called())
      await vi.waitFor(() => expect(serving('b', 'h')).toMatchObject({ status: 'True', reason: 'OnStage' }))
      cluster.setLease({ ...called(), holders: ['a'], handover: 'uid-next', handovers: 1 })
      await vi.waitFor(() => expect(saidBy('b')).toMatchObject({ final: true }), { timeout: 10_000 })
      await stop(agentB)
      expect([...b.stops]).toEqual(['handover-uid-h'])
      const { dumps, thaws } = b.counts
      await start('b', b)
      await vi.waitFor(() => expect(b.counts.dumps).toBeGreaterThan(dumps), { timeout: 10_000 })
      await vi.waitFor(() => expect(saidBy('b')).toMatchObject({ final: true, role: 'source' }), {
        timeout: 10_000,
      })
      expect([...b.stops]).toEqual(['handover-uid-h'])
      expect(b.counts.thaws).toBe(thaws)
      await stop(agentA)
    })

    it('and its probes count again where it cannot be stopped', async () => {
      await start('a', a)
      await start('b', b)
      await untilFrozen('one')
      a.refusesStops = true
      const dumps = a.counts.dumps
      cluster.setLease(asked())
      await sleep(300)
      await vi.waitFor(() => expect([...a.suspended, ...a.stops]).toEqual([]), { interval: 1 })
      expect(a.running.get('uid-p')).toBe('one')
      expect(a.counts.dumps).toBeLessThanOrEqual(dumps + 3)
    })

    it('and the primary goes on as before when nobody is called after all', async () => {
      await start('a', a)
      await start('b', b)
      await untilFrozen('one')
      cluster.setLease(asked())
      await untilHandedOver()
      cluster.setLease(atFirst())
      await vi.waitFor(() => expect([...a.stops]).toEqual([]))
      a.running.set('uid-p', 'two')
      await untilFrozen('two')
      expect([saidBy('a')?.final, saidBy('b')?.final]).toEqual([undefined, undefined])
    })
  })

  it('a primary that has stood still in vain goes on and is asked again only when somebody else wants it', async () => {
    cluster.writePolicy({ intervalMs: 30_000 })
    await start('a', a)
    await start('b', b)
    await untilFrozen('one')
    const said = () => cluster.reports.get('a')?.status?.slots[0]
    a.coming.set('uid-p', Promise.resolve())
    cluster.setLease({ ...atFirst(), handover: 'uid-h' })
    await vi.waitFor(() => expect(said()).toMatchObject({ handoverPaused: true, reason: 'PagesComing' }))
    expect([...a.stops]).toEqual([])
    a.coming.clear()
    await sleep(500)
    expect([...a.stops]).toEqual([])
    const pod = podOf('p', 'primary')
    const wish = { ...pod.metadata.annotations, [annotations.handoverRequested]: 'now' }
    cluster.put('a', { ...pod, metadata: { ...pod.metadata, annotations: wish } })
    await vi.waitFor(() => expect(said()?.final).toBe(true))
    expect([...a.stops]).toEqual(['handover-uid-p'])
    expect(said()?.handoverPaused).toBeUndefined()
  })

  it('D3.keep: keep as many generations as the set says, at the source and on the holder', async () => {
    cluster.writePolicy({ keep: 3 })
    await start('a', a)
    await start('b', b)
    await untilFrozen('one')
    await vi.waitFor(
      () => {
        for (const node of ['a', 'b']) {
          const kept = cluster.stores.get(node)?.list() ?? []
          expect(kept[0]?.manifest.generation, node).toBeGreaterThan(4)
          expect(kept.length, node).toBeGreaterThanOrEqual(3)
          // Plus one while a new generation is being committed.
          expect(kept.length, node).toBeLessThanOrEqual(4)
        }
      },
      { timeout: 60_000 },
    )
  }, 90_000)

  it('a source that is to keep one generation keeps the one before for what differs, until the next one', async () => {
    cluster.writePolicy({ keep: 1 })
    await start('a', a)
    await start('b', b)
    const counts = new Set<number>()
    await vi.waitFor(
      () => {
        const kept = cluster.stores.get('a')?.list() ?? []
        counts.add(kept.length)
        expect(kept[0]?.manifest.generation).toBeGreaterThan(4)
        expect(kept).toHaveLength(2)
      },
      { timeout: 60_000, interval: 5 },
    )
    expect(Math.max(...counts)).toBe(2)
    await vi.waitFor(() => expect(cluster.stores.get('b')?.list()).toHaveLength(1))
  }, 90_000)

  it('a generation that is still being fetched is followed by none, unless another holder has it', async () => {
    await start('a', a)
    await vi.waitFor(() => expect(a.counts.dumps).toBeGreaterThan(0))
    const store = cluster.stores.get('a')
    await vi.waitFor(() => expect(store?.list()).not.toEqual([]))
    const newest = store?.list()[0]
    if (store === undefined || newest === undefined) throw new Error('nothing is stored')
    // A holder that is slow, or pretends to be.
    const release = store.retain(newest.manifest.slot, newest.manifest.generation)
    // One checkpoint may have been under way.
    await expect
      .poll(
        async () => {
          const before = a.counts.dumps
          await sleep(1_000)
          return a.counts.dumps - before
        },
        { timeout: 10_000 },
      )
      .toBe(0)
    const held = a.counts.dumps
    await start('b', b)
    await vi.waitFor(() => expect(a.counts.dumps).toBeGreaterThan(held), { timeout: 5_000 })
    // The reported pace is the actual one.
    await vi.waitFor(
      () => {
        const [slot] = cluster.reports.get('a')?.status?.slots ?? []
        expect(slot?.intervalSeconds).toBeGreaterThanOrEqual(1)
        expect(slot?.intervalReason).toBe('HoldersBehind')
      },
      { timeout: 5_000 },
    )
    release()
  })

  it('D7.let-go: a node that was let go mentions the slot until its last fetch has ended', async () => {
    await start('b', b)
    const store = cluster.stores.get('b')
    if (store === undefined) throw new Error('the agent has no store')
    const fetch = Promise.withResolvers<never>()
    const begin = vi.spyOn(store, 'begin').mockReturnValue(fetch.promise)
    const generations = () => cluster.reports.get('b')?.status?.slots.map(({ generation }) => generation)
    await start('a', a)
    await vi.waitFor(() => expect(begin).toHaveBeenCalled(), { timeout: 5_000 })
    const letGo = (epoch: number) =>
      cluster.setLease({ ...atFirst(), epoch, heir: undefined, holders: ['c'] })
    letGo(1)
    await sleep(300)
    expect(generations()).toEqual([0])
    fetch.reject(new AgentError('PeerUnreachable', 'a'))
    letGo(2)
    await vi.waitFor(() => expect(generations()).toEqual([]), { timeout: 5_000 })
  })

  it('D7.pace: a dump that fails now and then is tried again soon, however often one has failed before', async () => {
    a.duringDump = () => {
      if (a.counts.dumps % 2 === 1) throw new AgentError('DumpFailed', 'every other one')
    }
    await start('a', a)
    await start('b', b)
    // Seven consecutive failures would mean pauses of 25 s.
    await vi.waitFor(
      () => expect(cluster.reports.get('a')?.status?.slots[0]?.generation).toBeGreaterThan(6),
      {
        timeout: 20_000,
      },
    )
    expect(a.counts.dumps).toBeGreaterThan(13)
  }, 30_000)

  it('D7.pace: a dump that has stopped the primary in vain is not tried again before that is paid off', async () => {
    await start('a', a)
    await start('b', b)
    await untilFrozen('one')
    a.duringDump = async () => {
      await sleep(400)
      throw new AgentError('DumpExpired', 'too late')
    }
    // At 2 percent 0.4 s take up 20 s, of which 2 s may be ahead.
    await vi.waitFor(
      () => expect(cluster.reports.get('a')?.status?.slots[0]).toMatchObject({ reason: 'DumpExpired' }),
      { timeout: 5_000 },
    )
    const { dumps } = a.counts
    await sleep(1_000)
    expect(a.counts.dumps).toBe(dumps)
  })

  describe('D7.pace: the time for which a primary has stood still', () => {
    const dumpsStay = async (count: number) => {
      await sleep(800)
      expect(a.counts.dumps).toBe(count)
    }
    const ask = (word: string) => {
      const pod = podOf('p', 'primary')
      cluster.put('a', {
        ...pod,
        metadata: { ...pod.metadata, annotations: { [annotations.checkpointRequested]: word } },
      })
    }
    const saved = () => {
      const [slot] = cluster.reports.get('a')?.status?.slots ?? []
      return { generation: slot?.generation, answered: slot?.answeredRequest }
    }
    const shows = (generation: number, answered?: string) =>
      vi.waitFor(() => expect(saved()).toEqual({ generation, answered }), { timeout: 5_000 })

    beforeEach(async () => {
      // At 2 percent each freeze takes up 50 s.
      a.frozenSeconds = 1
      await start('a', a)
      await start('b', b)
      await shows(1)
    })

    it('counts where its duty begins again, and less of it once it may stand still for longer', async () => {
      cluster.setLease({ ...atFirst(), epoch: 2 })
      await dumpsStay(1)
      cluster.writePolicy({ maxFreezePercent: 50 })
      await vi.waitFor(() => expect(a.counts.dumps).toBeGreaterThan(1), { timeout: 5_000 })
    })

    it('counts after a failure: of what is asked for one is on loan, and no other', async () => {
      a.beforeStop = () => {
        a.beforeStop = () => undefined
        throw new AgentError('DumpFailed', 'once')
      }
      ask('one')
      await shows(2, 'one')
      expect(a.counts.dumps).toBe(3)
      ask('two')
      await dumpsStay(3)
      expect(saved().answered).toBe('one')
    })
  })

  it('D3.volumes-duty: save nothing of a pod whose volumes are too large, say so, and begin when they are not', async () => {
    a.volumeBytes = 2 ** 30 + 1
    await start('a', a)
    await vi.waitFor(() =>
      expect(cluster.reports.get('a')?.status?.slots[0]).toMatchObject({
        reason: 'VolumesTooLarge',
        message: expect.stringContaining('checkpoint.volumes.maxSize'),
      }),
    )
    expect(a.counts.dumps).toBe(0)
    a.volumeBytes = 2 ** 20
    await vi.waitFor(() => expect(a.counts.dumps).toBeGreaterThan(0), { timeout: 60_000 })
  }, 90_000)

  const findsNoRoom = async () => {
    await start('a', a)
    await vi.waitFor(() =>
      expect(cluster.reports.get('a')?.status?.slots[0]).toMatchObject({ reason: 'StoreFull' }),
    )
    expect(a.counts.dumps).toBe(0)
  }

  it('D7.budget: a first dump for which there is no room is not begun, and nothing is stopped for it', async () => {
    a.memoryBytes = 1e9 + 1
    await findsNoRoom()
    a.memoryBytes = 1e6
    await vi.waitFor(() => expect(a.counts.dumps).toBeGreaterThan(0), { timeout: 60_000 })
  }, 90_000)

  it('D10.tmpfs: what volumes have is set aside before a first dump, too', async () => {
    a.memoryBytes = 9e8
    a.volumeBytes = 2e8
    await findsNoRoom()
    a.volumeBytes = 1e6
    await vi.waitFor(() => expect(a.counts.dumps).toBeGreaterThan(0), { timeout: 60_000 })
  }, 90_000)

  it('D10.tmpfs: a dump that grows too large says so, and the last good one stays', async () => {
    const slot = () => cluster.reports.get('a')?.status?.slots[0]
    a.duringDump = async () => {
      if (a.counts.dumps === 1) return
      const draft = (await readdir(a.directory, { recursive: true })).find(name => /\.draft-\w+$/.test(name))
      // The file is sparse, but its whole size counts.
      if (draft !== undefined) await truncate(join(a.directory, draft, 'word'), 2e9)
    }
    await start('a', a)
    await vi.waitFor(() => expect(slot()).toMatchObject({ generation: 1, reason: 'StoreFull' }), {
      timeout: 60_000,
    })
    a.duringDump = () => undefined
    await vi.waitFor(() => expect(slot()?.generation).toBeGreaterThan(1), { timeout: 60_000 })
  }, 90_000)

  it('go on where the agent before them ended', async () => {
    await start('a', a)
    const first = await start('b', b)
    await untilFrozen('one')
    await stop(first)
    expect(frozen()?.clone.stage).toBe('Frozen')
    const { restores, discards } = b.counts
    // A stopped source makes no new generation.
    for (const agent of [...agents]) await stop(agent)
    const watches = new Map(a.watches)
    await start('b', b)
    await untilFrozen('one')
    expect(b.counts).toMatchObject({ restores, discards })
    const next = await start('a', a)
    await vi.waitFor(() => expect(a.watches).toEqual(watches))
    a.running.delete('uid-p')
    next.die('uid-p')
    expect(serving('a', 'p')).toMatchObject({ status: 'False', reason: 'Died' })
  })

  it('D7.deaths: tell a death that happened while there was no agent', async () => {
    const agentA = await start('a', a)
    await start('b', b)
    await untilFrozen('one')
    await stop(agentA)
    a.running.set('uid-p', 'impostor')
    cluster.put('a', podOf('p', 'primary', { containerId: 'containerd://again' }))
    const dumps = a.counts.dumps
    await start('a', a)
    await vi.waitFor(() => expect(serving('a', 'p')).toMatchObject({ reason: 'Died' }))
    expect(a.counts.dumps).toBe(dumps)
  })

  it('finish what an agent had begun that ended between thaw and word', async () => {
    await start('a', a)
    const first = await start('b', b, async () => ({ outcome: 'failure', message: 'not yet' }))
    await untilFrozen('one')
    cluster.setLease(called())
    await vi.waitFor(() => expect(frozen()?.clone.stage).toBe('Thawed'))
    await stop(first)
    expect(serving('b', 'h')).toBeUndefined()
    const { restores } = b.counts
    await start('b', b)
    await vi.waitFor(() => expect(serving('b', 'h')).toMatchObject({ status: 'True' }))
    expect(b.counts.restores).toBe(restores)
  })

  describe('with memory that comes later', () => {
    const toCome = async () => {
      cluster.writePolicy({ mode: 'Staged' })
      const [agentA, agentB] = [await start('a', a), await start('b', b)]
      await vi.waitFor(() => expect(cluster.reports.get('b')?.status?.slots[0]?.usable).toBe('Staged'))
      const arrival = Promise.withResolvers<void>()
      arrival.promise.catch(() => undefined)
      b.coming.set('uid-h', arrival.promise)
      a.running.delete('uid-p')
      agentA.die('uid-p')
      cluster.setLease({ ...called(), holders: ['a'] })
      await vi.waitFor(() => expect(serving('b', 'h')).toMatchObject({ status: 'True', reason: 'OnStage' }))
      return { agentB, arrival }
    }
    const reasonAt = (node: string) => cluster.reports.get(node)?.status?.slots[0]?.reason

    it('save nothing until it is there, and say so; the next agent too', async () => {
      const { agentB, arrival } = await toCome()
      await vi.waitFor(() => expect(reasonAt('b')).toBe('PagesComing'))
      await stop(agentB)
      cluster.reports.remove('b')
      await start('b', b)
      await vi.waitFor(() => expect(reasonAt('b')).toBe('PagesComing'))
      expect(b.counts.dumps).toBe(0)
      arrival.resolve()
      await vi.waitFor(() => expect(b.counts.dumps).toBeGreaterThan(0))
      await vi.waitFor(() => expect(reasonAt('b')).toBeUndefined())
    })

    it('tell a death when it does not come', async () => {
      const { arrival } = await toCome()
      arrival.reject(new AgentError('PagesLost', 'container app: killed'))
      await vi.waitFor(() => expect(serving('b', 'h')).toMatchObject({ status: 'False', reason: 'Died' }))
      expect(serving('b', 'h')?.message).toMatch(
        /^container app \(.*\) was killed, because the rest of its memory/,
      )
    })
  })

  it('take the generation before when the newest cannot be brought back', async () => {
    await start('a', a)
    await start('b', b)
    await untilFrozen('one')
    b.broken.set('two', 'RestoreFailed')
    a.running.set('uid-p', 'two')
    const has = (word: string) =>
      vi.waitFor(() => expect(cluster.reports.get('b')?.status?.slots[0]).toMatchObject({ reason: word }), {
        timeout: 5_000,
      })
    await has('RestoreFailed')
    // The understudy holds the earlier memory again for as long as the node keeps it.
    a.running.set('uid-p', 'three')
    await untilFrozen('three')
  })

  it('say of an understudy that an earlier memory has spoiled that it is to be replaced', async () => {
    await start('a', a)
    await start('b', b)
    await untilFrozen('one')
    b.broken.set('two', 'UnderstudySpoiled')
    a.running.set('uid-p', 'two')
    const condition = () => cluster.condition('b', 'h', podConditions.understudy)
    await vi.waitFor(() => expect(condition()).toMatchObject({ status: 'False', reason: spoiledReason }), {
      timeout: 5_000,
    })
    // Even memory that could be restored elsewhere does not repair it.
    a.running.set('uid-p', 'three')
    await vi.waitFor(() => expect(b.counts.restores).toBeGreaterThanOrEqual(3))
    expect(condition()).toMatchObject({ reason: spoiledReason })
  })

  it('D7.deleted: end a primary that is being deleted before its successor starts', async () => {
    await start('a', a)
    await start('b', b)
    await untilFrozen('one')
    cluster.put('a', podOf('p', 'primary', { deleted: true }))
    await vi.waitFor(() => expect(serving('a', 'p')).toMatchObject({ reason: 'Died' }))
    expect(a.running.has('uid-p')).toBe(false)
  })

  it('D7.deleted: also in the middle of a checkpoint, which is not waited for', async () => {
    await start('a', a)
    await start('b', b)
    await untilFrozen('one')
    const dump = Promise.withResolvers<void>()
    a.duringDump = () => {
      cluster.put('a', podOf('p', 'primary', { deleted: true }))
      return dump.promise
    }
    await vi.waitFor(() => expect(serving('a', 'p')).toMatchObject({ reason: 'Died' }))
    expect(a.running.has('uid-p')).toBe(false)
    dump.resolve()
  })

  describe('D7.deleted: before an agent knows what memory is kept here it ends', () => {
    it.each([
      ['what a pod has left that is gone', () => cluster.pods.get('a')?.remove('default/p')],
      ['who runs on beside its successor', () => cluster.setLease(called())],
    ])('%s', async (_, happens) => {
      const agentA = await start('a', a)
      await start('b', b)
      await untilFrozen('one')
      await vi.waitFor(() => expect(a.watches.size).toBe(1))
      await stop(agentA)
      happens()
      const recall = Promise.withResolvers<void>()
      a.recalled = recall.promise
      const reported = cluster.reports.get('a')
      await start('a', a)
      await vi.waitFor(() => expect(a.running.has('uid-p')).toBe(false))
      // Its report does not yet name its copies.
      expect(cluster.reports.get('a')).toBe(reported)
      recall.resolve()
      await vi.waitFor(() => expect(cluster.reports.get('a')).not.toBe(reported))
    })
  })

  describe('D7.deleted: who was called and has not answered yet', () => {
    const thawed = async () => {
      await start('a', a)
      const agentB = await start('b', b, async () => ({ outcome: 'failure', message: 'not yet' }))
      await untilFrozen('one')
      cluster.setLease(called())
      await vi.waitFor(() => expect(b.running.has('uid-h')).toBe(true))
      return agentB
    }

    it('is ended when its pod is deleted without its grace', async () => {
      await thawed()
      cluster.pods.get('b')?.remove('default/h')
      await vi.waitFor(() => expect(b.running.has('uid-h')).toBe(false))
      await vi.waitFor(() => expect(b.watches.size).toBe(0))
    })

    it('is ended likewise where no agent saw its pod go', async () => {
      await stop(await thawed())
      cluster.pods.get('b')?.remove('default/h')
      await start('b', b)
      await vi.waitFor(() => expect(b.running.has('uid-h')).toBe(false))
    })

    it('is not mourned when it ends: its memory is brought back there again', async () => {
      const agentB = await thawed()
      b.running.delete('uid-h')
      agentB.die('uid-h')
      await sleep(100)
      expect(serving('b', 'h')).toBeUndefined()
      // The kubelet restarts the process that holds the place.
      b.clones.delete('uid-h')
      cluster.put('b', podOf('h', 'hotbackup', { containerId: 'containerd://h2' }))
      await vi.waitFor(() => expect(b.running.has('uid-h')).toBe(true))
      expect(serving('b', 'h')).toBeUndefined()
      expect([...b.watches].map(([name, { died }]) => [name, died])).toEqual([['uid-h/app/h2', false]])
    })
  })

  it('D7.deleted: end what a pod has left that was deleted without its grace, and only then', async () => {
    const agentA = await start('a', a)
    await vi.waitFor(() => expect([...a.watches.keys()]).toHaveLength(1))
    // A pod that has only lost its labels is no longer ours, and keeps running.
    cluster.unlabelled.add('uid-p')
    cluster.pods.get('a')?.remove('default/p')
    await vi.waitFor(() => expect(a.watches.size).toBe(0))
    expect(a.kills).toEqual([])
    cluster.unlabelled.clear()
    cluster.put('a', podOf('p', 'primary'))
    await vi.waitFor(() => expect([...a.watches.keys()]).toHaveLength(1))
    // Also if no agent saw it vanish.
    await stop(agentA)
    cluster.pods.get('a')?.remove('default/p')
    await start('a', a)
    await vi.waitFor(() => expect(a.watches.size).toBe(0))
    expect(a.running.has('uid-p')).toBe(false)
    expect(a.kills).toHaveLength(1)
    // No agent can change its redirect any more, and its heir may get another slot.
    expect(a.waysLeft).toEqual(['127.0.0.1'])
  })

  describe('of two saved containers', () => {
    const names = ['app', 'side'] as const
    const two = (up: readonly string[]): Pod => {
      const base = podOf('p', 'primary')
      return {
        ...base,
        metadata: { ...base.metadata, annotations: { [savedAnnotation]: names.join(',') } },
        spec: { containers: names.map(name => ({ name })) },
        status: {
          ...base.status,
          containerStatuses: names.map(name => ({
            ...{ name, image: 'web:1', imageID: 'sha256:1', ready: true, restartCount: 0 },
            ...(up.includes(name) && {
              containerID: `containerd://${name}`,
              state: { running: { startedAt: '2020-01-01T00:00:00Z' } },
            }),
          })),
        },
      }
    }

    it('D7.deaths: the one that lives ends with the other, for its memory is somebody else’s from then on', async () => {
      cluster.put('a', two(names))
      const agentA = await start('a', a)
      cluster.reports.upsert({
        metadata: { name: 'b', uid: 'b', resourceVersion: '1' },
        status: usableAt('b', atFirst()),
      })
      await vi.waitFor(() =>
        expect([...a.watches.values()].map(({ heir }) => heir)).toEqual(['10.0.0.2', '10.0.0.2']),
      )
      agentA.die('uid-p', 'app')
      await vi.waitFor(() => expect(a.kills).toHaveLength(1))
      expect(serving('a', 'p')).toMatchObject({ reason: 'Died' })
    })

    it('D7.deleted: one that is down keeps nobody from ending the other, nor from saying so', async () => {
      await start('a', a)
      cluster.put('a', two(['side']))
      cluster.setLease({ ...called(), ip: '10.0.0.7' })
      await vi.waitFor(() => expect(serving('a', 'p')).toMatchObject({ reason: 'Died' }))
      expect(a.running.has('uid-p')).toBe(false)
    })
  })

  describe('a dead primary', () => {
    const die = async () => {
      const agentA = await start('a', a)
      await start('b', b)
      await untilFrozen('one')
      await vi.waitFor(() => expect(watch()?.heir).toBe('10.0.0.2'))
      a.running.delete('uid-p')
      agentA.die('uid-p')
      return agentA
    }
    const watch = () => [...a.watches.values()][0]

    it('D7.grave: is kept shut off while an operator is at work, and only for a time', async () => {
      await die()
      await vi.waitFor(() => expect(a.burials).toHaveLength(1), { timeout: 5_000 })
      expect(watch()).toMatchObject({ isClosed: true, lastsMs: 60_000 })
    })

    it('D7.grave: is not where none is', async () => {
      cluster.operatorLeads = false
      await die()
      await sleep(200)
      expect(a.burials).toEqual([])
      // It is closed as soon as an operator leads again.
      cluster.operatorLeads = true
      await vi.waitFor(() => expect(a.burials).toHaveLength(1), { timeout: 5_000 })
    })

    it('D7.grave: is not where nobody can be asked', async () => {
      const agentA = await start('a', a)
      await start('b', b)
      await untilFrozen('one')
      cluster.isAway = true
      agentA.die('uid-p')
      await sleep(200)
      expect(a.burials).toEqual([])
      cluster.isAway = false
      await vi.waitFor(() => expect(a.burials).toHaveLength(1), { timeout: 5_000 })
    })

    it('D7.grave: leads nowhere when its heir is gone, or is called to another slot', async () => {
      await die()
      await vi.waitFor(() => expect(watch()).toMatchObject({ heir: '10.0.0.2' }))
      cluster.setLease({ ...lease({ name: 'web-1', holder: { name: 'h', uid: 'uid-h' }, node: 'b' }) })
      await vi.waitFor(() => expect(watch()).toMatchObject({ heir: '127.0.0.1' }))
      cluster.pods.get('b')?.remove('default/h')
      cluster.setLease({ ...lease({ name: 'web-1', holder: { name: 'x', uid: 'uid-x' }, node: 'b' }) })
      await vi.waitFor(() => expect(watch()).toMatchObject({ heir: '127.0.0.1' }))
    })

    it('where the kernel has no rules for that, what the kubelet starts in its place is ended', async () => {
      a.noGraves = true
      const agentA = await start('a', a)
      await start('b', b)
      await untilFrozen('one')
      agentA.die('uid-p')
      a.running.set('uid-p', 'impostor')
      const again = podOf('p', 'primary', { containerId: 'containerd://again' })
      const conditions = cluster.pod('a', 'p')?.status?.conditions ?? []
      cluster.put('a', { ...again, status: { ...again.status, conditions } })
      await vi.waitFor(() => expect(a.running.has('uid-p')).toBe(false))
    })
  })

  describe('the last look before the thaw', () => {
    it('D7.swap: who is not called any more does not run, however old what its agent has seen is', async () => {
      await start('b', b)
      await start('a', a)
      await untilFrozen('one')
      cluster.setLease(called())
      // Meanwhile the API server has given the slot to another pod.
      cluster.setLease({ ...called(), epoch: 3, holder: { name: 'c', uid: 'uid-c' }, node: 'c' }, false)
      await sleep(400)
      expect(b.running.has('uid-h')).toBe(false)
      expect(cluster.condition('b', 'h', podConditions.understudy)?.reason).not.toBe('RestoreFailed')
    })

    it('D7.swap: who cannot ask waits, and goes on as soon as it is answered', async () => {
      await start('b', b)
      await start('a', a)
      await untilFrozen('one')
      cluster.isAway = true
      cluster.setLease(called())
      await sleep(400)
      expect(b.running.has('uid-h')).toBe(false)
      cluster.isAway = false
      await vi.waitFor(() => expect(serving('b', 'h')).toMatchObject({ status: 'True' }))
    })
  })

  it('D7.ending: end nobody who answers again, however old what they have seen is; who cannot ask ends it', async () => {
    await start('a', a)
    await start('b', b)
    await untilFrozen('one')
    const ending = { ...atFirst(), ending: 'uid-p' }
    cluster.setLease(ending)
    // Meanwhile the Lease on the API server no longer asks for the end.
    cluster.setLease(atFirst(), false)
    await sleep(400)
    expect(a.running.get('uid-p')).toBe('one')
    cluster.isAway = true
    await vi.waitFor(() => expect(a.running.has('uid-p')).toBe(false))
  })

  it('empty an understudy that was called and then was not', async () => {
    await start('a', a)
    await start('b', b, async () => ({ outcome: 'failure', message: 'not yet' }))
    await untilFrozen('one')
    cluster.setLease(called())
    await vi.waitFor(() => expect(frozen()?.clone.stage).toBe('Thawed'))
    // The slot stays with its primary, and has no heir.
    cluster.setLease({ ...atFirst(), epoch: 3, heir: undefined })
    await vi.waitFor(() => expect(frozen()).toBeUndefined())
  })

  it.each([
    ['and has no slot', undefined],
    ['and is heir again', atFirst().heir],
  ])(
    'D6.serving: an understudy that was on stage %s says so, is not mourned, and can be called again',
    async (_, heir) => {
      await start('a', a)
      await start('b', b)
      await untilFrozen('one')
      cluster.setLease(called())
      await vi.waitFor(() => expect(serving('b', 'h')).toMatchObject({ status: 'True' }))
      await vi.waitFor(() => expect(b.watches.size).toBe(1))
      cluster.setLease({ ...atFirst(), epoch: 3, heir })
      await vi.waitFor(() => expect(serving('b', 'h')).toMatchObject({ status: 'False', reason: 'OffStage' }))
      await vi.waitFor(() => expect(b.watches.size).toBe(0))
      await vi.waitFor(() => expect(b.counts.discards).toBeGreaterThan(0))
      expect(b.mourned).toEqual([])
      // The agent has restored its memory there again, or does so now.
      cluster.setLease({ ...called(), epoch: 4 })
      await vi.waitFor(() => expect(serving('b', 'h')?.message).toMatch(/^epoch 4/), { timeout: 5_000 })
    },
  )

  describe('D6.called-off: what its agent has thawed and could not tell of, before another one was called,', () => {
    /** The state after the agent died: the app runs, and the operator has waited for the report without success. */
    const thawed = async (over: Pod = podOf('h', 'hotbackup')) => {
      await start('a', a)
      const agentB = await start('b', b)
      await untilFrozen('one')
      await stop(agentB)
      const lies = b.clones.get('uid-h')
      if (lies === undefined) throw new Error('nothing lies there')
      b.clones.set('uid-h', { ...lies, clone: { ...lies.clone, stage: 'Thawed' } })
      b.running.set('uid-h', lies.word)
      cluster.put('b', over)
    }
    const other = { ...called(), epoch: 3, holder: { name: 'c', uid: 'uid-c' }, node: 'c' }

    it.each([
      ['where the node can bring nothing back', podOf('h', 'hotbackup'), false],
      ['where it was woken for it', podOf('h', 'coldbackup'), true],
      ['where its pod is being deleted', podOf('h', 'hotbackup', { deleted: true }), true],
    ] as const)('is ended: %s', async (_, pod, able) => {
      await thawed(pod)
      cluster.setLease(other)
      b.able = able
      await start('b', b)
      await vi.waitFor(() => expect(b.running.has('uid-h')).toBe(false), { timeout: 5_000 })
      expect(b.clones.has('uid-h')).toBe(false)
      expect(b.mourned).toEqual([])
    })

    it('is not ended by an old Lease', async () => {
      await thawed()
      // The agent's cache does not show it yet.
      cluster.setLease(called(), false)
      await start('b', b)
      await sleep(500)
      expect(b.running.has('uid-h')).toBe(true)
      cluster.setLease(called())
      await vi.waitFor(() => expect(serving('b', 'h')).toMatchObject({ status: 'True' }))
    })
  })

  it('D7.deaths: what died while there was no agent is judged by what is known, not by what was not looked at yet', async () => {
    const agentA = await start('a', a)
    await start('b', b)
    await untilFrozen('one')
    await vi.waitFor(() => expect(a.watches.size).toBe(1))
    await stop(agentA)
    for (const [name, watch] of a.watches) a.watches.set(name, { ...watch, died: true, isClosed: true })
    a.running.delete('uid-p')
    await start('a', a)
    await vi.waitFor(() => expect(serving('a', 'p')).toMatchObject({ reason: 'Died' }))
    expect([...a.watches.values()]).toMatchObject([{ isClosed: true }])
  })

  it('D7.deaths: a container that nobody watched is another one by its id, also within the second of the last dump', async () => {
    cluster.setLease({ ...atFirst(), containers: 'app=containerd://p' })
    const agentA = await start('a', a)
    await start('b', b)
    await untilFrozen('one')
    await stop(agentA)
    // With the sentinel its watches are gone, too.
    a.watches.clear()
    a.running.set('uid-p', 'impostor')
    cluster.put('a', podOf('p', 'primary', { containerId: 'containerd://again' }))
    const { dumps } = a.counts
    await start('a', a)
    await vi.waitFor(() => expect(serving('a', 'p')).toMatchObject({ reason: 'Died' }))
    expect(a.counts.dumps).toBe(dumps)
  })

  it('what overwrites the word of a death is written over again', async () => {
    const agentA = await start('a', a)
    await start('b', b)
    await untilFrozen('one')
    agentA.die('uid-p')
    await vi.waitFor(() => expect(serving('a', 'p')).toMatchObject({ reason: 'Died' }))
    const pod = cluster.pod('a', 'p')
    const late = { type: podConditions.serving, status: 'False', reason: 'NotAnswering', message: 'late' }
    if (pod !== undefined) cluster.put('a', { ...pod, status: { ...pod.status, conditions: [late] } })
    expect(serving('a', 'p')?.reason).toBe('NotAnswering')
    await vi.waitFor(() => expect(serving('a', 'p')?.reason).toBe('Died'), { timeout: 5_000 })
  })

  it('say when nothing can be brought on stage', async () => {
    await start('b', b)
    cluster.setLease(called())
    await vi.waitFor(() =>
      expect(cluster.condition('b', 'h', podConditions.understudy)).toMatchObject({
        status: 'False',
        reason: 'RestoreFailed',
      }),
    )
    expect(serving('b', 'h')).toBeUndefined()
  })

  it('D6.probes: end a primary that does not answer any more, and its successor likewise', async () => {
    const livenessProbe = { tcpSocket: { port: 80 }, failureThreshold: 1 }
    cluster.writePolicy({ liveness: { periodMs: 50, failureThreshold: 2 } })
    cluster.put('a', podOf('p', 'primary', { probes: { livenessProbe } }))
    cluster.put('b', podOf('h', 'hotbackup', { probes: { livenessProbe } }))
    let hangs = false
    const probe: Probe = async () =>
      hangs ? { outcome: 'failure', message: 'no answer' } : { outcome: 'success' }
    await start('a', a, probe)
    await start('b', b, probe)
    await untilFrozen('one')
    hangs = true
    const lost = { status: 'False', reason: 'Died', message: expect.stringContaining('liveness') }
    await vi.waitFor(() => expect(serving('a', 'p')).toMatchObject(lost))
    expect(a.running.has('uid-p')).toBe(false)

    hangs = false
    cluster.setLease(called())
    await vi.waitFor(() => expect(serving('b', 'h')).toMatchObject({ status: 'True' }))
    hangs = true
    await vi.waitFor(() => expect(serving('b', 'h')).toMatchObject(lost))
  })

  it('D6.probes: end a promoted primary that does not answer, also when its set keeps no memory any more', async () => {
    let hangs = false
    const probe: Probe = async () =>
      hangs ? { outcome: 'failure', message: 'no answer' } : { outcome: 'success' }
    await start('a', a, probe)
    await start('b', b, probe)
    await untilFrozen('one')
    cluster.setLease(called())
    await vi.waitFor(() => expect(serving('b', 'h')).toMatchObject({ status: 'True' }))
    // The state that the operator leaves: by its label the pod is a primary, and its slot has no Lease.
    const livenessProbe = { tcpSocket: { port: 80 }, periodSeconds: 1, failureThreshold: 1 }
    const promoted = podOf('h', 'hotbackup', { probes: { livenessProbe } })
    cluster.put('b', {
      ...promoted,
      metadata: {
        ...promoted.metadata,
        labels: { ...promoted.metadata.labels, [labels.type]: 'primary', [labels.slot]: '0' },
      },
      status: { ...promoted.status, conditions: cluster.pod('b', 'h')?.status?.conditions ?? [] },
    })
    for (const each of cluster.leases.list()) cluster.leases.remove(`default/${each.metadata.name}`)
    hangs = true
    await vi.waitFor(
      () =>
        expect(serving('b', 'h')).toMatchObject({
          ...{ status: 'False', reason: 'Died', message: expect.stringContaining('liveness') },
        }),
      { timeout: 10_000 },
    )
    expect(b.running.has('uid-h')).toBe(false)
  })

  it('keep no memory of an app that does not answer, however long the kubelet takes to say so', async () => {
    const readinessProbe = { tcpSocket: { port: 80 } }
    cluster.put('a', podOf('p', 'primary', { probes: { readinessProbe } }))
    cluster.put('b', podOf('h', 'hotbackup', { probes: { readinessProbe } }))
    let sick = false
    const probe: Probe = async () =>
      sick ? { outcome: 'failure', message: 'status 503' } : { outcome: 'success' }
    await start('a', a, probe)
    await start('b', b, probe)
    await untilFrozen('one')
    // Only then, because a dump may be between its probe and its freeze.
    sick = true
    const report = () => cluster.reports.get('a')?.status?.slots[0]
    await vi.waitFor(() => expect(report()).toMatchObject({ role: 'source', reason: 'NotAnswering' }))
    a.running.set('uid-p', 'sick')
    const { dumps } = a.counts
    await new Promise(resolve => setTimeout(resolve, 500))
    expect(a.counts.dumps).toBe(dumps)
    expect(frozen()?.word).toBe('one')
    sick = false
    a.running.set('uid-p', 'well')
    await untilFrozen('well')
    expect(report()?.reason).toBeUndefined()
  })

  it('forget the watches of a pod that is gone, and no others', async () => {
    const agentA = await start('a', a)
    await vi.waitFor(() => expect(a.watches.size).toBe(1))
    cluster.pods.get('a')?.remove('default/p')
    await vi.waitFor(() => expect(a.watches.size).toBe(0))
    await stop(agentA)
  })
})
