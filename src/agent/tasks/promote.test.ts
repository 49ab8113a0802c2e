import { setTimeout as sleep } from 'node:timers/promises'
import { describe, expect, it, vi } from 'vitest'
import { AgentError } from '../../api/agent-errors.ts'
import { podConditions, spoiledReason } from '../../api/pod-contract.ts'
import type { FakeCluster } from '../testing/fake/cluster.ts'
import { createFakeMemory, dispose, type FakeMemory } from '../testing/fake/memory.ts'
import { atFirst, called, podOf, useTwoNodes } from '../testing/fake/two-nodes.ts'

describe('the agents of two nodes: promotions', () => {
  let cluster: FakeCluster
  let a: FakeMemory
  let b: FakeMemory
  const { start, stop, serving, untilFrozen, untilNewerElsewhere, stopAll } = useTwoNodes(made => {
    ;({ cluster, a, b } = made)
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
    await vi.waitFor(() => expect(serving('c', 'r')).toMatchObject({ status: 'True', reason: 'OnStage' }))
    expect(c.running.get('uid-r')).toBe('one')
    await vi.waitFor(() => expect([...a.watches.values()].map(({ heir }) => heir)).toEqual(['10.0.0.7']))
    await stopAll()
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
    await vi.waitFor(() => expect(generationAt('c')).toBeGreaterThan(before + 2))
    await stop(agentA)
    cluster.setLease({ ...called(), holders: ['c'] })
    await start('b', b)
    await vi.waitFor(() => expect(serving('b', 'h')).toMatchObject({ status: 'True', reason: 'OnStage' }))
    expect(b.running.get('uid-h')).toBe('two')
    await stopAll()
    await dispose(c)
  }, 30_000)

  it('D7.newest: do not go on stage with what lies there, if the Lease asks for newer memory that cannot be fetched', async () => {
    await start('a', a)
    const agentB = await start('b', b)
    await untilFrozen('one')
    await stop(agentB)
    await stopAll()
    const least = { epoch: 1, generation: 900, takenAt: 0 }
    cluster.setLease({ ...called(), atLeast: least })
    await start('b', b)
    await untilNewerElsewhere()
    expect(b.running.get('uid-h')).toBeUndefined()
    cluster.setLease(called())
    await vi.waitFor(() => expect(serving('b', 'h')).toMatchObject({ status: 'True', reason: 'OnStage' }))
    expect(b.running.get('uid-h')).toBe('one')
  }, 30_000)

  it('D7.newest: do not go on stage if the Lease asks for newer memory in the last moment', async () => {
    await start('a', a)
    const agentB = await start('b', b)
    await untilFrozen('one')
    await stop(agentB)
    await stopAll()
    const lease = { ...called(), atLeast: { epoch: 1, generation: 900, takenAt: 0 } }
    cluster.setLease(called())
    // The agent's cache has the Lease as it was before.
    cluster.setLease(lease, false)
    await start('b', b)
    await untilNewerElsewhere()
    expect(b.running.get('uid-h')).toBeUndefined()
  }, 30_000)

  it('D7.ending: say that the pod resumes before it does, and leave it if the Lease has told it to end by then', async () => {
    await start('a', a)
    const agentB = await start('b', b)
    await untilFrozen('one')
    await stop(agentB)
    cluster.setLease(called())
    // The agent's cache has the Lease as it was before.
    cluster.setLease({ ...called(), ending: 'uid-h' }, false)
    const next = await start('b', b)
    await vi.waitFor(() => expect(serving('b', 'h')).toMatchObject({ status: 'False', reason: 'Resuming' }))
    await sleep(100)
    expect(b.running.has('uid-h')).toBe(false)
    // Another pod has the slot: the next call must not take that word for its own.
    cluster.setLease({ ...atFirst(), epoch: 3 })
    await vi.waitFor(() => expect(serving('b', 'h')).toMatchObject({ reason: 'OffStage' }))
    await stop(next)
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
      vi.waitFor(() => expect(cluster.reports.get('b')?.status?.slots[0]).toMatchObject({ reason: word }))
    await has('RestoreFailed')
    // The understudy holds the earlier memory again for as long as the node keeps it.
    a.running.set('uid-p', 'three')
    await untilFrozen('three')
  })

  it('D7.same-generation: restore the newest once more when its frozen clone is lost, and not the one before', async () => {
    await start('a', a)
    await start('b', b)
    await untilFrozen('one')
    a.running.set('uid-p', 'two')
    await untilFrozen('two')
    b.unthawed.add('two')
    cluster.setLease(called())
    await vi.waitFor(() => expect(serving('b', 'h')).toMatchObject({ status: 'True', reason: 'OnStage' }))
    expect(b.running.get('uid-h')).toBe('two')
  })

  it('say of an understudy that an earlier memory has spoiled that it is to be replaced', async () => {
    await start('a', a)
    await start('b', b)
    await untilFrozen('one')
    b.broken.set('two', 'UnderstudySpoiled')
    a.running.set('uid-p', 'two')
    const condition = () => cluster.condition('b', 'h', podConditions.understudy)
    await vi.waitFor(() => expect(condition()).toMatchObject({ status: 'False', reason: spoiledReason }))
    // Even memory that could be restored elsewhere does not repair it.
    a.running.set('uid-p', 'three')
    await vi.waitFor(() => expect(b.counts.restores).toBeGreaterThanOrEqual(3))
    expect(condition()).toMatchObject({ reason: spoiledReason })
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
})
