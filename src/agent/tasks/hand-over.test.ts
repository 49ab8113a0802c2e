import { setTimeout as sleep } from 'node:timers/promises'
import { describe, expect, it, vi } from 'vitest'
import { annotations } from '../../api/labels.ts'
import { stepsBehind } from '../../slot/decide/age.ts'
import type { FakeCluster } from '../testing/fake/cluster.ts'
import type { FakeMemory } from '../testing/fake/memory.ts'
import { atFirst, called, podOf, useTwoNodes } from '../testing/fake/two-nodes.ts'

describe('the agents of two nodes', () => {
  let cluster: FakeCluster
  let a: FakeMemory
  let b: FakeMemory
  const { start, stop, serving, frozen, untilFrozen } = useTwoNodes(made => {
    ;({ cluster, a, b } = made)
  })

  describe('hand a slot over', () => {
    const asked = () => ({ ...atFirst(), handover: 'uid-h' })
    const saidBy = (node: string) => cluster.reports.get(node)?.status?.slots[0]
    const untilHandedOver = () =>
      vi.waitFor(() => {
        expect([saidBy('a')?.final, saidBy('b')?.final]).toEqual([true, true])
        expect(saidBy('b')?.takenAt).toBe(saidBy('a')?.takenAt)
      })

    /** Starts both agents; the primary stands for its successor. Returns the agent of the primary. */
    const standing = async () => {
      const agentA = await start('a', a)
      await start('b', b)
      await untilFrozen('one')
      cluster.setLease(asked())
      await untilHandedOver()
      return agentA
    }

    it('D3.stands-still: the primary stands from its last generation on, until its successor is called', async () => {
      await start('a', a)
      await start('b', b)
      await untilFrozen('one')
      expect([saidBy('a')?.final, saidBy('b')?.final]).toEqual([undefined, undefined])
      expect(b.counts.lazyRestores).toBe(0)
      a.running.set('uid-p', 'two')
      cluster.setLease(asked())
      await untilHandedOver()
      expect([...a.stops]).toEqual(['handover-uid-p'])
      // Clients wait, so its pages arrive later, if they are many.
      expect(b.counts.lazyRestores).toBe(1)
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

    it('D7.same-generation: its last generation is one that no earlier one can stand for', async () => {
      const seen = new Set<number>()
      const looking = setInterval(() => seen.add(saidBy('a')?.generation ?? 0), 2)
      await standing()
      clearInterval(looking)
      const final = saidBy('a')?.generation ?? 0
      expect(seen.size).toBeGreaterThan(1)
      expect(seen).not.toContain(final - 1)
      // Where one generation is missing, it counts as in transit; here more than one is.
      const before = { epoch: 1, generation: final - 2, takenAt: 1 }
      expect(stepsBehind(before, { epoch: 1, generation: final, takenAt: 2 }, 10_000)).toBe(1)
    })

    describe('with a record of writes on request', () => {
      const large = 65 * 1024 * 1024
      const recording = async (bytes: number) => {
        a.recordsOnRequest = true
        a.dumpBytes = bytes
        cluster.writePolicy({ intervalMs: 3_600_000 })
        const agentA = await start('a', a)
        await start('b', b)
        await untilFrozen('one')
        return agentA
      }
      /** Returns the stops in effect at each dump from the request on. */
      const handOver = async () => {
        const stops: string[] = []
        a.duringDump = () => void stops.push([...a.stops].join())
        cluster.setLease(asked())
        await untilHandedOver()
        return stops
      }

      it('a large primary is saved once more before it is stopped, so that the last save reads only what was written', async () => {
        await recording(large)
        const { restores, lazyRestores } = b.counts
        expect(await handOver()).toEqual(['', 'handover-uid-p'])
        // The heir has restored the first one as a whole, before the stop.
        expect([b.counts.restores - restores, b.counts.lazyRestores - lazyRestores]).toEqual([2, 1])
        expect([...a.recorded]).toEqual(['uid-p'])
        // The record ends with the handover, whatever becomes of it.
        cluster.setLease(atFirst())
        await vi.waitFor(() => expect([...a.recorded]).toEqual([]))
        expect(a.running.get('uid-p')).toBe('one')
      })

      it('a small one is not, and nothing is recorded', async () => {
        await recording(0)
        expect(await handOver()).toEqual(['handover-uid-p'])
        expect([...a.recorded]).toEqual([])
      })

      it('a primary that an earlier agent has stopped is not saved twice', async () => {
        const agentA = await recording(large)
        await handOver()
        await stop(agentA)
        a.recorded.clear()
        const { dumps } = a.counts
        await start('a', a)
        // The report of the earlier agent said how long it had stood.
        await vi.waitFor(() => expect(saidBy('a')?.stoodForSeconds).toBeUndefined())
        await vi.waitFor(() =>
          expect(saidBy('a')).toMatchObject({ final: true, standsForSeconds: expect.any(Number) }),
        )
        expect([a.counts.dumps - dumps, ...a.recorded]).toEqual([1])
      })

      it('a handover that is called off during the save before the stop stops nothing', async () => {
        await recording(large)
        const began = Promise.withResolvers<void>()
        const goesOn = Promise.withResolvers<void>()
        a.duringDump = () => {
          began.resolve()
          return goesOn.promise
        }
        const { dumps } = a.counts
        cluster.setLease(asked())
        await began.promise
        cluster.setLease(atFirst())
        await sleep(100)
        goesOn.resolve()
        await vi.waitFor(() => expect([...a.recorded]).toEqual([]))
        await sleep(300)
        expect([...a.stops, ...a.suspended]).toEqual([])
        expect(a.counts.dumps).toBe(dumps + 1)
      })
    })

    it('D7.endpoints: the primary ends once its successor is ready: before that, its Services might have no endpoint', async () => {
      await standing()
      await vi.waitFor(() => expect([...a.watches.values()][0]?.heir).toBeDefined())
      cluster.unready.add('uid-h')
      cluster.setLease(called())
      await vi.waitFor(() => expect(serving('b', 'h')).toMatchObject({ status: 'True', reason: 'OnStage' }))
      // Clients of its address are at the successor's already.
      await vi.waitFor(() => expect(a.burials).not.toEqual([]))
      await sleep(300)
      expect(a.running.has('uid-p')).toBe(true)
      expect([...a.stops]).toEqual(['handover-uid-p'])
      cluster.unready.clear()
      await vi.waitFor(() => expect(a.running.has('uid-p')).toBe(false))
      await vi.waitFor(() => expect(serving('a', 'p')?.reason).toBe('Died'))
    })

    it('D7.handed-over: the primary is stopped once no holder receives an earlier generation any more', async () => {
      await start('a', a)
      await start('b', b)
      await untilFrozen('one')
      const arrived = cluster.stores.get('a')?.announceReader(asked())
      cluster.setLease(asked())
      await sleep(300)
      expect([...a.stops]).toEqual([])
      arrived?.()
      await untilHandedOver()
      expect([...a.stops]).toEqual(['handover-uid-p'])
    })

    it('D7.handed-over: the primary is not stopped before there is room for its last generation', async () => {
      // No other generation is being saved when the room is taken: its end would make room.
      cluster.writePolicy({ intervalMs: 3_600_000 })
      await start('a', a)
      await start('b', b)
      await untilFrozen('one')
      const stopped = vi.spyOn(a.stops, 'add')
      const store = cluster.stores.get('a')
      const other = { namespace: 'other', name: 'full', incarnation: '00000001' }
      const full = await store?.begin(other, 1, { expectedBytes: store.room })
      cluster.writePolicy({})
      cluster.setLease(asked())
      await vi.waitFor(() => expect(saidBy('a')).toMatchObject({ handoverPaused: true, reason: 'StoreFull' }))
      expect(stopped).not.toHaveBeenCalled()
      await full?.discard()
      await untilHandedOver()
      expect([...a.stops]).toEqual(['handover-uid-p'])
    })

    it('nor does it go on where it is ended for that first', async () => {
      await standing()
      cluster.setLease({ ...asked(), ending: 'uid-p' })
      await vi.waitFor(() => expect(serving('a', 'p')).toMatchObject({ status: 'False', reason: 'Died' }))
      expect([...a.stops]).toEqual(['handover-uid-p'])
    })

    it('stands on where its agent ends, for an operator counts on it; the next one takes that over', async () => {
      const agentA = await standing()
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
      const agentA = await standing()
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
      await vi.waitFor(() => expect(saidBy('b')).toMatchObject({ final: true }))
      await stop(agentB)
      expect([...b.stops]).toEqual(['handover-uid-h'])
      const { dumps, thaws } = b.counts
      await start('b', b)
      await vi.waitFor(() => expect(b.counts.dumps).toBeGreaterThan(dumps))
      await vi.waitFor(() => expect(saidBy('b')).toMatchObject({ final: true, role: 'source' }))
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

    it('D7.handed-over: stands on where the API server says that its successor is called, though no watch has told it yet', async () => {
      await standing()
      cluster.setLease(atFirst())
      cluster.setLease(called(), false)
      await vi.waitFor(() => expect(saidBy('a')?.standsForSeconds).toBeUndefined())
      await sleep(100)
      expect([...a.stops]).toEqual(['handover-uid-p'])
      cluster.setLease(called())
      await vi.waitFor(() => expect(serving('a', 'p')).toMatchObject({ status: 'False', reason: 'Died' }))
      expect([...a.stops]).toEqual(['handover-uid-p'])
    })

    it('and the primary goes on as before when nobody is called after all', async () => {
      await standing()
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
})
