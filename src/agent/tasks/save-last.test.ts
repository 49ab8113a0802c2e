import { setTimeout as sleep } from 'node:timers/promises'
import { describe, expect, it, vi } from 'vitest'
import { heldEndAnnotation } from '../../api/pod-contract.ts'
import { servingRecordOf } from '../../api/serving-record.ts'
import { type Clock, systemClock } from '../../kube/clock.ts'
import type { Pod } from '../../kube/resources.ts'
import type { FakeCluster } from '../testing/fake/cluster.ts'
import type { FakeMemory } from '../testing/fake/memory.ts'
import { atFirst, called, podOf, useTwoNodes } from '../testing/fake/two-nodes.ts'

describe('D16.last-save: a primary whose app does not know yet that it is deleted', () => {
  let cluster: FakeCluster
  let a: FakeMemory
  let b: FakeMemory
  const { start, serving, untilFrozen } = useTwoNodes(made => {
    ;({ cluster, a, b } = made)
  })
  const saidBy = (node: string) => cluster.reports.get(node)?.status?.slots[0]
  /** Deleted so long ago, with a hook of ten seconds. */
  const deleted = (agoMs: number, over: object = {}, hookSeconds = 10): Pod => {
    const hook = { lifecycle: { preStop: { sleep: { seconds: hookSeconds } } } }
    const base = podOf('p', 'primary', { deleted: true, probes: hook })
    return {
      ...base,
      metadata: {
        ...base.metadata,
        annotations: { ...base.metadata.annotations, [heldEndAnnotation]: '10' },
        deletionTimestamp: new Date(Date.now() - agoMs + 30_000).toISOString(),
        deletionGracePeriodSeconds: 30,
        ...over,
      },
    }
  }
  const unready = (pod: Pod): Pod => ({
    ...pod,
    status: { ...pod.status, conditions: [{ type: 'Ready', status: 'False' }] },
  })
  const begin = async () => {
    await start('a', a)
    await start('b', b)
    await untilFrozen('one')
    a.running.set('uid-p', 'two')
  }
  const died = () => vi.waitFor(() => expect(serving('a', 'p')).toMatchObject({ reason: 'Died' }))

  it('is stopped and saved once more, and never resumes', async () => {
    await begin()
    const stopsAtDump: string[][] = []
    a.duringDump = async () => void stopsAtDump.push([...a.stops])
    cluster.put('a', deleted(0))
    await died()
    // A dump of the interval may begin before the agent sees the deletion.
    expect(stopsAtDump.filter(stops => stops.length > 0)).toEqual([['last-uid-p']])
    expect(a.running.has('uid-p')).toBe(false)
    await untilFrozen('two')
    expect(saidBy('b')?.generation).toBe(saidBy('a')?.generation)
  })

  it('serves on until its successor stands by with the newest memory, and connections lead there then', async () => {
    await start('a', a)
    await vi.waitFor(() => expect(saidBy('a')?.generation).toBeGreaterThan(0))
    await vi.waitFor(() => expect(a.watches.size).toBe(1))
    cluster.setLease({ ...atFirst(), heir: undefined })
    await vi.waitFor(() => expect([...a.watches.values()][0]?.heir).toBe('127.0.0.1'))
    cluster.writePolicy({ intervalMs: 60_000 })
    const usableAtStop: unknown[] = []
    a.duringDump = async () => {
      if (a.stops.has('last-uid-p')) usableAtStop.push(saidBy('b')?.usable)
    }
    const heirs: unknown[] = []
    a.whileKilled = () => void heirs.push([...a.watches.values()][0]?.heir)
    a.running.set('uid-p', 'two')
    cluster.put('a', deleted(0))
    await sleep(300)
    expect(a.running.get('uid-p')).toBe('two')
    expect(a.stops.size).toBe(0)
    cluster.setLease(atFirst())
    await start('b', b)
    await died()
    expect(usableAtStop).toEqual(['Frozen'])
    expect(serving('a', 'p')?.status).toBe('True')
    expect(heirs[0]).toBe('10.0.0.2')
    await untilFrozen('two')
  })

  it('is saved while it serves on if it is large, so that the last save reads only what was written', async () => {
    a.recordsOnRequest = true
    a.dumpBytes = 65 * 1024 * 1024
    cluster.writePolicy({ intervalMs: 3_600_000 })
    await begin()
    const stops: string[] = []
    a.duringDump = () => void stops.push([...a.stops].join())
    cluster.put('a', deleted(0))
    await died()
    expect(stops).toEqual(['', 'last-uid-p'])
    expect([...a.recorded]).toEqual(['uid-p'])
    await untilFrozen('two')
  })

  it('stops at once beside a container that ends before it', async () => {
    await start('a', a)
    await vi.waitFor(() => expect(saidBy('a')?.generation).toBeGreaterThan(0))
    a.running.set('uid-p', 'two')
    const alone = deleted(0)
    const containers = [...(alone.spec?.containers ?? []), { name: 'proxy', image: 'proxy:1' }]
    const began = saidBy('a')?.generation ?? 0
    cluster.put('a', { ...alone, spec: { containers } })
    await vi.waitFor(() => expect(a.stops.has('last-uid-p')).toBe(true), 2_000)
    await died()
    await vi.waitFor(() => expect(saidBy('a')?.generation).toBeGreaterThan(began))
  })

  it('is not saved if it does not serve any more when its successor stands by', async () => {
    await start('a', a)
    await vi.waitFor(() => expect(saidBy('a')?.generation).toBeGreaterThan(0))
    const stopsAtDump: string[] = []
    a.duringDump = async () => void stopsAtDump.push([...a.stops].join())
    cluster.put('a', deleted(0))
    await sleep(100)
    cluster.put('a', unready(deleted(0)))
    await start('b', b)
    await died()
    expect(stopsAtDump).not.toContain('last-uid-p')
  })

  it('is saved in time if nobody stands by', async () => {
    await start('a', a)
    await vi.waitFor(() => expect(saidBy('a')?.generation).toBeGreaterThan(0))
    a.running.set('uid-p', 'two')
    const before = saidBy('a')?.generation ?? 0
    cluster.put('a', deleted(6_500))
    await died()
    await start('b', b)
    await vi.waitFor(() => expect(saidBy('b')?.generation).toBeGreaterThan(before + 1))
    await untilFrozen('two')
  })

  it('tells of its last save with its death, for no report does so yet', async () => {
    await begin()
    cluster.put('a', deleted(0))
    await died()
    const told = servingRecordOf(cluster.pod('a', 'p') ?? podOf('p', 'primary')).left?.generation
    expect(told).toBeDefined()
    await vi.waitFor(() => expect(saidBy('a')?.usable).toBeDefined())
    expect(told).toBe(saidBy('a')?.generation)
  })

  it('also if it is stopped for its successor, and so answers no probe', async () => {
    const { promise: dumped, resolve: go } = Promise.withResolvers<void>()
    const readinessProbe = { httpGet: { port: 80 } }
    const probed = (pod: Pod): Pod => ({
      ...pod,
      spec: { containers: (pod.spec?.containers ?? []).map(each => ({ ...each, readinessProbe })) },
    })
    cluster.put('a', probed(podOf('p', 'primary')))
    await start('a', a, async () =>
      a.stops.size > 0 ? { outcome: 'failure', message: 'stopped' } : { outcome: 'success' },
    )
    await start('b', b)
    await untilFrozen('one')
    a.running.set('uid-p', 'two')
    a.duringDump = () => (a.stops.has('handover-uid-p') && !a.stops.has('last-uid-p') ? dumped : undefined)
    cluster.setLease({ ...atFirst(), handover: 'uid-h' })
    await vi.waitFor(() => expect([...a.stops]).toContain('handover-uid-p'))
    cluster.put('a', probed(deleted(0)))
    go()
    await died()
    await untilFrozen('two')
    expect(saidBy('b')?.generation).toBe(saidBy('a')?.generation)
  })

  it('and its heir has nothing older to continue with', async () => {
    await begin()
    cluster.writePolicy({ intervalMs: 10_000 })
    cluster.put('a', deleted(0))
    await died()
    await vi.waitFor(() => expect(saidBy('a')?.usable).toBeDefined())
    const { epoch = 1, generation = 0, takenAt = '' } = saidBy('a') ?? {}
    const atLeast = { epoch, generation, takenAt: Date.parse(takenAt) }
    cluster.setLease({ ...called(), holders: ['a'], kept: ['a', 'b'], atLeast })
    await vi.waitFor(() => expect(b.running.has('uid-h')).toBe(true))
    expect(b.running.get('uid-h')).toBe('two')
  })

  it.each([
    ['long ago', () => deleted(8_700)],
    ['with a short grace period', () => deleted(0, { deletionGracePeriodSeconds: 1 })],
    ['by a clock that differs too much', () => deleted(-3_000)],
    ['while it was not ready', () => unready(deleted(0))],
    ['with a hook that the API server has cut', () => deleted(0, {}, 0)],
    ['with a mark that is none', () => deleted(0, { annotations: { [heldEndAnnotation]: '5000' } })],
  ])('is not saved if it was deleted %s', async (_, pod) => {
    await begin()
    const stopsAtDump: string[][] = []
    a.duringDump = async () => void stopsAtDump.push([...a.stops])
    cluster.put('a', pod())
    await died()
    // A dump of the interval may begin before the agent sees the deletion.
    expect(stopsAtDump.filter(stops => stops.length > 0)).toEqual([])
  })

  it('keeps what was saved before if its app may know by the end of the dump', async () => {
    await begin()
    const before = saidBy('a')?.generation
    a.duringDump = async () => {
      cluster.put('a', deleted(0, { deletionGracePeriodSeconds: 0 }))
    }
    cluster.put('a', deleted(0))
    await died()
    // A dump of the interval may have ended just before. The last save would be one more.
    expect(saidBy('a')?.generation).toBeLessThan((before ?? 0) + 2)
  })

  it('is saved although its app may know of its end before the memory is hashed', async () => {
    await begin()
    a.beforeSeal = () => (a.stops.has('last-uid-p') ? sleep(2_500) : undefined)
    // So the app does not know of its end for 2 s. A busy machine needs some of them until the stop.
    cluster.put('a', deleted(6_500))
    await died()
    await untilFrozen('two')
  })

  it('is dead as soon as it is stopped, saved and killed, however long the kernel takes to free its memory', async () => {
    // It waits for the kernel as long as it likes, were it not for the stop.
    const patient = (ms: number) => (ms === 1_000 ? 600_000 : ms)
    const clock: Clock = { ...systemClock, sleep: (ms, signal) => systemClock.sleep(patient(ms), signal) }
    await start('a', a, undefined, clock)
    await start('b', b)
    await untilFrozen('one')
    a.running.set('uid-p', 'two')
    const { promise: freed, resolve: free } = Promise.withResolvers<void>()
    a.whileKilled = () => freed
    cluster.put('a', deleted(0))
    await died()
    free()
    await untilFrozen('two')
  })

  it('ends all the same if it cannot be stopped', async () => {
    await begin()
    a.refusesStops = true
    cluster.put('a', deleted(0))
    await died()
    expect(a.running.has('uid-p')).toBe(false)
  })
})
