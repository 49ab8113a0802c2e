import { readdir, truncate } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { describe, expect, it, vi } from 'vitest'
import { AgentError } from '../../api/agent-errors.ts'
import { KubeError } from '../../kube/errors.ts'
import type { Probe } from '../../probe/probe.ts'
import type { FakeCluster } from '../testing/fake/cluster.ts'
import type { FakeMemory } from '../testing/fake/memory.ts'
import { podOf, useTwoNodes } from '../testing/fake/two-nodes.ts'

describe('the agents of two nodes: checkpoints', () => {
  let cluster: FakeCluster
  let a: FakeMemory
  let b: FakeMemory
  const { start, frozen, untilFrozen } = useTwoNodes(made => {
    ;({ cluster, a, b } = made)
  })

  const findsNoRoom = async () => {
    await start('a', a)
    await vi.waitFor(() =>
      expect(cluster.reports.get('a')?.status?.slots[0]).toMatchObject({ reason: 'StoreFull' }),
    )
    expect(a.counts.dumps).toBe(0)
  }
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

    it('D7.ending: in vain where the API server says that the pod is being deleted, though no watch has told it yet', async () => {
      const isThere = vi.fn(async () => false)
      cluster.presence = isThere
      await start('a', a)
      await vi.waitFor(() => expect(isThere).toHaveBeenCalled())
      await vi.waitFor(() =>
        expect(cluster.reports.get('a')?.status?.slots[0]).toMatchObject({ reason: 'DumpVoid' }),
      )
      expect(generation()).toBe(0)
      isThere.mockImplementation(() => Promise.reject(new KubeError('Unavailable', 'away')))
      await vi.waitFor(() => expect(generation()).toBe(1))
    })

    it('also where its pace is edited meanwhile, which counts for the next one', async () => {
      cluster.writePolicy({ intervalMs: 3_600_000 })
      a.duringDump = async () => {
        a.duringDump = () => undefined
        cluster.writePolicy({ intervalMs: 1_800_000, keep: 3, maxFreezePercent: 1 })
        await sleep(20)
      }
      await start('a', a)
      await vi.waitFor(() => expect([a.counts.dumps, generation()]).toEqual([1, 1]))
      cluster.writePolicy({})
      await vi.waitFor(() => expect(generation()).toBeGreaterThan(2))
    })
  })

  it('D3.keep: keep as many generations as the set says, at the source and on the holder', async () => {
    cluster.writePolicy({ keep: 3 })
    await start('a', a)
    await start('b', b)
    await untilFrozen('one')
    await vi.waitFor(() => {
      for (const node of ['a', 'b']) {
        const kept = cluster.stores.get(node)?.list() ?? []
        expect(kept[0]?.manifest.generation, node).toBeGreaterThan(4)
        expect(kept.length, node).toBeGreaterThanOrEqual(3)
        // Plus one while a new generation is being committed.
        expect(kept.length, node).toBeLessThanOrEqual(4)
      }
    })
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
      { interval: 5 },
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
      .poll(async () => {
        const before = a.counts.dumps
        await sleep(1_000)
        return a.counts.dumps - before
      })
      .toBe(0)
    const held = a.counts.dumps
    await start('b', b)
    await vi.waitFor(() => expect(a.counts.dumps).toBeGreaterThan(held))
    // The reported pace is the actual one.
    await vi.waitFor(() => {
      const [slot] = cluster.reports.get('a')?.status?.slots ?? []
      expect(slot?.intervalSeconds).toBeGreaterThanOrEqual(1)
      expect(slot?.intervalReason).toBe('HoldersBehind')
    })
    release()
  })

  it('D7.pace: a dump that fails now and then is tried again soon, however often one has failed before', async () => {
    a.duringDump = () => {
      if (a.counts.dumps % 2 === 1) throw new AgentError('DumpFailed', 'every other one')
    }
    await start('a', a)
    await start('b', b)
    // Seven consecutive failures would mean pauses of 25 s.
    await vi.waitFor(() => expect(cluster.reports.get('a')?.status?.slots[0]?.generation).toBeGreaterThan(6))
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
    await vi.waitFor(() =>
      expect(cluster.reports.get('a')?.status?.slots[0]).toMatchObject({ reason: 'DumpExpired' }),
    )
    const { dumps } = a.counts
    await sleep(1_000)
    expect(a.counts.dumps).toBe(dumps)
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
    await vi.waitFor(() => expect(a.counts.dumps).toBeGreaterThan(0))
  }, 90_000)

  it('D7.budget: a first dump for which there is no room is not begun, and nothing is stopped for it', async () => {
    a.memoryBytes = 1e9 + 1
    await findsNoRoom()
    a.memoryBytes = 1e6
    await vi.waitFor(() => expect(a.counts.dumps).toBeGreaterThan(0))
  }, 90_000)

  it('D10.tmpfs: what volumes have is set aside before a first dump, too', async () => {
    a.memoryBytes = 9e8
    a.volumeBytes = 2e8
    await findsNoRoom()
    a.volumeBytes = 1e6
    await vi.waitFor(() => expect(a.counts.dumps).toBeGreaterThan(0))
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
    await vi.waitFor(() => expect(slot()).toMatchObject({ generation: 1, reason: 'StoreFull' }))
    a.duringDump = () => undefined
    await vi.waitFor(() => expect(slot()?.generation).toBeGreaterThan(1))
  }, 90_000)

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
    await vi.waitFor(() => expect(report()?.reason).toBeUndefined())
  })

  it('D7.look-again: an app that did not answer at its first checkpoint is not left without one for an interval of hours', async () => {
    cluster.writePolicy({ intervalMs: 3_600_000 })
    cluster.put('a', podOf('p', 'primary', { probes: { readinessProbe: { tcpSocket: { port: 80 } } } }))
    let answers = 0
    await start('a', a, async () => {
      answers += 1
      return answers === 1 ? { outcome: 'failure', message: 'status 503' } : { outcome: 'success' }
    })
    await vi.waitFor(() => expect(a.counts.dumps).toBe(1))
    expect(answers).toBe(2)
  })
})
