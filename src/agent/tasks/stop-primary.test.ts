import { setTimeout as sleep } from 'node:timers/promises'
import { describe, expect, it, vi } from 'vitest'
import { savedAnnotation } from '../../api/pod-contract.ts'
import type { Pod } from '../../kube/resources.ts'
import type { FakeCluster } from '../testing/fake/cluster.ts'
import type { FakeMemory } from '../testing/fake/memory.ts'
import { lease, usableAt } from '../testing/fake/snapshots.ts'
import { atFirst, called, podOf, useTwoNodes } from '../testing/fake/two-nodes.ts'

describe('the agents of two nodes: ends of primaries', () => {
  let cluster: FakeCluster
  let a: FakeMemory
  let b: FakeMemory
  const { start, stop, serving, untilFrozen } = useTwoNodes(made => {
    ;({ cluster, a, b } = made)
  })

  it('D7.deleted: end a primary that is being deleted before its successor starts', async () => {
    await start('a', a)
    await start('b', b)
    await untilFrozen('one')
    cluster.put('a', podOf('p', 'primary', { deleted: true }))
    await vi.waitFor(() => expect(serving('a', 'p')).toMatchObject({ reason: 'Died' }))
    expect(a.running.has('uid-p')).toBe(false)
  })

  it.each([
    ['stays in its Services while its redirect leads to its heir', false, 'True'],
    ['leaves its Services at once where the redirect is refused', true, 'False'],
  ])('D7.endpoints: a primary that is ended %s', async (_, refuses, status) => {
    await start('a', a)
    await start('b', b)
    await untilFrozen('one')
    await vi.waitFor(() => expect([...a.watches.values()][0]?.heir).toBeDefined())
    a.refusesRedirects = refuses
    cluster.put('a', podOf('p', 'primary', { deleted: true }))
    await vi.waitFor(() => expect(serving('a', 'p')?.reason).toBe('Died'))
    expect(serving('a', 'p')?.status).toBe(status)
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

  it('D7.deleted: end a primary that was deleted by force, also if no sentinel watches it any more', async () => {
    await start('a', a)
    await start('b', b)
    await untilFrozen('one')
    a.watches.clear()
    cluster.pods.get('a')?.remove('default/p')
    await vi.waitFor(() => expect(a.running.has('uid-p')).toBe(false))
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
      await vi.waitFor(() => expect(a.burials).toHaveLength(1))
      expect(watch()).toMatchObject({ isClosed: true, lastsMs: 60_000 })
    })

    it('D7.grave: is not where none is', async () => {
      cluster.operatorLeads = false
      await die()
      await sleep(200)
      expect(a.burials).toEqual([])
      // It is closed as soon as an operator leads again.
      cluster.operatorLeads = true
      await vi.waitFor(() => expect(a.burials).toHaveLength(1))
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
      await vi.waitFor(() => expect(a.burials).toHaveLength(1))
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

  it('forget the watches of a pod that is gone, and no others', async () => {
    const agentA = await start('a', a)
    await vi.waitFor(() => expect(a.watches.size).toBe(1))
    cluster.pods.get('a')?.remove('default/p')
    await vi.waitFor(() => expect(a.watches.size).toBe(0))
    await stop(agentA)
  })

  it('D8.gone: do not keep a slot waiting whose primary an administrator has taken out of its set', async () => {
    const agentA = await start('a', a)
    await vi.waitFor(() => expect(a.watches.size).toBe(1))
    cluster.unlabelled.add('uid-p')
    cluster.pods.get('a')?.remove('default/p')
    await vi.waitFor(() => expect(cluster.reports.get('a')?.status?.slots[0]?.ended).toBe('uid-p'))
    expect(a.running.has('uid-p')).toBe(true)
    cluster.unlabelled.clear()
    await stop(agentA)
  })

  it('D8.gone: end a primary of which neither the sentinel nor the agent has ever seen anything, and tell it only then', async () => {
    const told = () => cluster.reports.get('a')?.status?.slots[0]?.ended
    cluster.pods.get('a')?.remove('default/p')
    const agentA = await start('a', a)
    await vi.waitFor(() => expect(told()).toBe('uid-p'))
    expect(a.running.has('uid-p')).toBe(false)
    await stop(agentA)
  })

  it('D8.gone: tell that a primary whose pod is gone has ended, and the next agent tells it too', async () => {
    const told = () => cluster.reports.get('a')?.status?.slots[0]?.ended
    const agentA = await start('a', a)
    await vi.waitFor(() => expect(a.watches.size).toBe(1))
    expect(told()).toBeUndefined()
    cluster.pods.get('a')?.remove('default/p')
    await vi.waitFor(() => expect(told()).toBe('uid-p'))
    expect(a.running.has('uid-p')).toBe(false)
    await stop(agentA)
    cluster.reports.remove('a')
    const next = await start('a', a)
    await vi.waitFor(() => expect(told()).toBe('uid-p'))
    await stop(next)
  })
})
