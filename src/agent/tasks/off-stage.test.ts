import { setTimeout as sleep } from 'node:timers/promises'
import { describe, expect, it, vi } from 'vitest'
import type { Pod } from '../../kube/resources.ts'
import type { FakeCluster } from '../testing/fake/cluster.ts'
import type { FakeMemory } from '../testing/fake/memory.ts'
import { atFirst, called, podOf, useTwoNodes } from '../testing/fake/two-nodes.ts'

describe('the agents of two nodes: promotions that are withdrawn', () => {
  let cluster: FakeCluster
  let a: FakeMemory
  let b: FakeMemory
  const { start, stop, serving, frozen, untilFrozen } = useTwoNodes(made => {
    ;({ cluster, a, b } = made)
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

    it('is ended at once when its pod is deleted, and not after its grace period', async () => {
      await thawed()
      cluster.put('b', podOf('h', 'hotbackup', { deleted: true }))
      await vi.waitFor(() => expect(b.running.has('uid-h')).toBe(false))
      await vi.waitFor(() => expect(serving('b', 'h')).toMatchObject({ reason: 'Died' }))
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
      expect(serving('b', 'h')).toMatchObject({ reason: 'Resuming' })
      // The kubelet restarts the process that holds the place.
      b.clones.delete('uid-h')
      cluster.put('b', podOf('h', 'hotbackup', { containerId: 'containerd://h2' }))
      await vi.waitFor(() => expect(b.running.has('uid-h')).toBe(true))
      expect(serving('b', 'h')).toMatchObject({ reason: 'Resuming' })
      expect([...b.watches].map(([name, { died }]) => [name, died])).toEqual([['uid-h/app/h2', false]])
    })
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
      await vi.waitFor(() => expect(serving('b', 'h')?.message).toMatch(/^epoch 4/))
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
      await vi.waitFor(() => expect(b.running.has('uid-h')).toBe(false))
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
})
