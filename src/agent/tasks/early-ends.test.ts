import { beforeEach, describe, expect, it, vi } from 'vitest'
import { podConditions } from '../../api/pod-contract.ts'
import { systemClock } from '../../kube/clock.ts'
import type { FakeCluster } from '../testing/fake/cluster.ts'
import type { FakeMemory } from '../testing/fake/memory.ts'
import type { FakeAgent } from '../testing/fake/node.ts'
import { called, podOf, useTwoNodes } from '../testing/fake/two-nodes.ts'

describe('MP-35: a memory whose app ends before it answers', () => {
  let cluster: FakeCluster
  let a: FakeMemory
  let b: FakeMemory
  let agentA: FakeAgent
  let agentB: FakeAgent
  const { start, stop, serving, untilFrozen } = useTwoNodes(made => {
    ;({ cluster, a, b } = made)
  })
  /** By which the agent's clock is ahead, ms. */
  let later = 0
  let isCauseThere = true
  const clock = { ...systemClock, monotonic: () => systemClock.monotonic() + later }
  const untilResumed = () => vi.waitFor(() => expect(b.running.has('uid-h')).toBe(true))
  const newestOf = (node: string) => cluster.stores.get(node)?.latest(called())?.manifest.generation
  /** The app ends, and the kubelet starts the container again. */
  const endIn = (container: string) => {
    agentB.die('uid-h')
    b.running.delete('uid-h')
    b.clones.delete('uid-h')
    const conditions = cluster.pod('b', 'h')?.status?.conditions ?? []
    const { status, ...pod } = podOf('h', 'hotbackup', { containerId: `containerd://${container}` })
    // The kubelet keeps the conditions that others write.
    cluster.put('b', { ...pod, status: { ...status, conditions } })
  }

  beforeEach(async () => {
    later = 0
    isCauseThere = true
    cluster.writePolicy({ keep: 5 })
    agentA = await start('a', a)
    const probe = async () =>
      b.running.get('uid-h') === 'one' || !isCauseThere
        ? ({ outcome: 'success' } as const)
        : ({ outcome: 'failure', message: 'connection refused' } as const)
    agentB = await start('b', b, probe, clock)
    await untilFrozen('one')
    a.running.set('uid-p', 'two')
    await untilFrozen('two')
    await stop(agentA)
    // It may have saved once more before its end, and a test that calls for the newest memory means that.
    await vi.waitFor(() => expect(newestOf('b')).toBe(newestOf('a')))
  })

  it('is resumed twice in one pod, and older memory follows if the Lease accepts it', async () => {
    cluster.setLease(called())
    const resumed: number[] = []
    for (;;) {
      await untilResumed()
      const { clone, word } = b.clones.get('uid-h') ?? {}
      if (word === 'one') break
      resumed.push(clone?.generation ?? 0)
      endIn(`h${resumed.length + 1}`)
    }
    const [newest] = resumed
    expect(resumed.filter(generation => generation === newest)).toHaveLength(2)
    expect(b.counts.thaws).toBe(2 * new Set(resumed).size + 1)
    await vi.waitFor(() => expect(serving('b', 'h')).toMatchObject({ status: 'True', reason: 'OnStage' }))
  })

  /** The Lease accepts nothing older than the newest memory. */
  const callForNewest = () => {
    const generation = newestOf('b') ?? 0
    // The one after it could be on its way, so this one is not too old.
    cluster.setLease({ ...called(), atLeast: { epoch: 1, generation: generation + 1, takenAt: 0 } })
  }
  const untilTold = () =>
    vi.waitFor(() =>
      expect(cluster.condition('b', 'h', podConditions.understudy)).toMatchObject({
        status: 'False',
        reason: 'RestoreFailed',
        message: expect.stringMatching(/ended before it answered.*is resumed once more after 20..-/),
      }),
    )
  const endTwice = async () => {
    for (const container of ['h2', 'h3']) {
      await untilResumed()
      endIn(container)
    }
    await untilTold()
  }

  it('is told if the Lease accepts nothing older, and not resumed a third time for now', async () => {
    callForNewest()
    await endTwice()
    expect(b.events).toContain('EndsApp')
    expect(b.counts.thaws).toBe(2)
    expect(b.running.has('uid-h')).toBe(false)
  })

  it('is resumed once more after half a minute, because the cause may have passed', async () => {
    callForNewest()
    await endTwice()
    isCauseThere = false
    later += 30_000
    await vi.waitFor(() => expect(serving('b', 'h')).toMatchObject({ status: 'True', reason: 'OnStage' }))
    expect(b.running.get('uid-h')).toBe('two')
    expect(b.counts.thaws).toBe(3)
  })

  it('has not failed any more, by the word of its agent, before it is resumed once more: the operator waits for its end', async () => {
    callForNewest()
    await endTwice()
    later += 30_000
    await untilResumed()
    expect(serving('b', 'h')).toMatchObject({ status: 'False', reason: 'Resuming' })
    expect(cluster.condition('b', 'h', podConditions.understudy)).toMatchObject({ reason: 'Resuming' })
  })

  it('is not barred by a thaw that failed, for the app had no part in that', async () => {
    callForNewest()
    await untilResumed()
    b.unthawed.add('two')
    endIn('h2')
    await untilResumed()
    expect(b.running.get('uid-h')).toBe('two')
    expect(b.events).toContain('ThawFailed')
    expect(b.events).not.toContain('EndsApp')
  })
})
