import { beforeEach, describe, expect, it, vi } from 'vitest'
import { AgentError } from '../../api/agent-errors.ts'
import type { FakeCluster } from '../testing/fake/cluster.ts'
import type { FakeMemory } from '../testing/fake/memory.ts'
import type { FakeAgent } from '../testing/fake/node.ts'
import { atFirst, called, useTwoNodes } from '../testing/fake/two-nodes.ts'

describe('MP-23: a move of which a step fails', () => {
  let cluster: FakeCluster
  let a: FakeMemory
  let b: FakeMemory
  let agentB: FakeAgent
  let restores = 0
  const { start, stop, serving, untilFrozen } = useTwoNodes(made => {
    ;({ cluster, a, b } = made)
  })
  const saidBy = (node: string) => cluster.reports.get(node)?.status?.slots[0]
  beforeEach(async () => {
    await start('a', a)
    agentB = await start('b', b)
    await untilFrozen('one')
    a.running.set('uid-p', 'two')
  })

  /** A step that fails, how that shows, and how it is mended. */
  interface Failure {
    readonly fail: () => unknown
    readonly seen: () => void
    readonly mend: () => unknown
  }
  const failures: readonly [string, Failure][] = [
    [
      'the source cannot be stopped',
      {
        fail: () => {
          a.refusesStops = true
        },
        seen: () => expect(saidBy('a')?.handoverPaused).toBe(true),
        mend: () => {
          a.refusesStops = false
        },
      },
    ],
    [
      'the dump fails',
      {
        fail: () => {
          a.duringDump = () => {
            throw new AgentError('DumpFailed', 'container app')
          }
        },
        seen: () => expect(saidBy('a')).toMatchObject({ handoverPaused: true, reason: 'DumpFailed' }),
        mend: () => {
          a.duringDump = () => undefined
        },
      },
    ],
    [
      'the transfer fails, because the target is away',
      {
        fail: () => stop(agentB),
        seen: () => expect(saidBy('a')?.final).toBe(true),
        mend: () => start('b', b),
      },
    ],
    [
      'the restore fails',
      {
        fail: () => {
          restores = b.counts.restores
          b.broken.set('two', 'RestoreFailed')
        },
        seen: () => {
          expect(saidBy('a')?.final).toBe(true)
          expect(b.counts.restores).toBeGreaterThan(restores)
          expect(saidBy('b')?.final).toBeUndefined()
        },
        mend: () => b.broken.clear(),
      },
    ],
  ]

  it.each(failures)('(%s) leaves its source running, and the next one succeeds', async (_, step) => {
    await step.fail()
    cluster.setLease({ ...atFirst(), handover: 'uid-h' })
    await vi.waitFor(step.seen)
    // The operator calls it off.
    cluster.setLease(atFirst())
    await vi.waitFor(() => expect([...a.stops, ...a.suspended]).toEqual([]))
    expect(a.running.get('uid-p')).toBe('two')
    expect(b.running.has('uid-h')).toBe(false)
    expect(serving('a', 'p')?.reason).not.toBe('Died')
    await step.mend()
    a.running.set('uid-p', 'three')
    await untilFrozen('three')
    cluster.setLease({ ...atFirst(), handover: 'uid-h', handovers: 1 })
    await vi.waitFor(() => expect([saidBy('a')?.final, saidBy('b')?.final]).toEqual([true, true]))
    cluster.setLease(called())
    await vi.waitFor(() => expect(serving('b', 'h')).toMatchObject({ status: 'True' }))
    await vi.waitFor(() => expect(serving('a', 'p')).toMatchObject({ reason: 'Died' }))
    expect(b.running.get('uid-h')).toBe('three')
    expect(a.running.has('uid-p')).toBe(false)
  })

  it('MP-16: keeps its generation on both nodes while it cannot be restored, and it is restored once it can', async () => {
    b.broken.set('two', 'RestoreFailed')
    cluster.setLease({ ...atFirst(), handover: 'uid-h' })
    const { restores: before } = b.counts
    const kept = () =>
      ['a', 'b'].map(node => cluster.stores.get(node)?.latest(atFirst())?.manifest.generation)
    // The first restore that fails may be one of an earlier generation.
    await vi.waitFor(() => {
      expect(b.counts.restores).toBeGreaterThan(before)
      expect(saidBy('a')?.final).toBe(true)
      const [generation] = kept()
      expect(generation).toBeGreaterThan(0)
      expect(kept()).toEqual([generation, generation])
    })
    b.broken.clear()
    cluster.setLease(called())
    await vi.waitFor(() => expect(b.running.get('uid-h')).toBe('two'))
  })
})
