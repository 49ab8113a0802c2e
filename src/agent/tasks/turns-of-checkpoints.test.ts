import { setTimeout as sleep } from 'node:timers/promises'
import { beforeEach, describe, expect, it, vi } from 'vitest'
import { labels } from '../../api/labels.ts'
import type { Probe } from '../../probe/probe.ts'
import type { FakeCluster } from '../testing/fake/cluster.ts'
import type { FakeMemory } from '../testing/fake/memory.ts'
import { lease } from '../testing/fake/snapshots.ts'
import { podOf, useTwoNodes } from '../testing/fake/two-nodes.ts'

describe('checkpoints of many primaries on one node', () => {
  let cluster: FakeCluster
  let a: FakeMemory
  const { start } = useTwoNodes(made => {
    ;({ cluster, a } = made)
  })
  const uids = Array.from({ length: 6 }, (_, index) => `uid-p${index}`)
  const addressOf = (uid: string) => `10.0.1.${uids.indexOf(uid)}`
  let stopped: Set<string>
  let most: number
  let release: () => void
  beforeEach(() => {
    cluster.writePolicy({ intervalMs: 3_600_000 })
    a.running.delete('uid-p')
    for (const [index, uid] of uids.entries()) {
      const { metadata, status, ...rest } = podOf(`p${index}`, 'primary', {
        probes: { readinessProbe: { tcpSocket: { port: 80 } } },
      })
      const marks = { ...metadata.labels, [labels.slot]: String(index) }
      a.running.set(uid, 'one')
      cluster.put('a', {
        ...rest,
        metadata: { ...metadata, labels: marks },
        status: { ...status, podIP: addressOf(uid) },
      })
      const holder = { name: `p${index}`, uid }
      cluster.setLease(lease({ name: `web-${index}`, holder, node: 'a', holders: ['b'] }))
    }
    stopped = new Set()
    most = 0
    const held = Promise.withResolvers<void>()
    release = held.resolve
    a.duringDump = async uid => {
      stopped.add(uid)
      most = Math.max(most, stopped.size)
      await held.promise
      await sleep(20)
      stopped.delete(uid)
    }
  })
  const generations = () => cluster.stores.get('a')?.list().length

  it('D6.turns: few of them are stopped at once, and all are saved', async () => {
    await start('a', a)
    await vi.waitFor(() => expect(stopped.size).toBe(2))
    await sleep(200)
    release()
    await vi.waitFor(() => expect(generations()).toBe(uids.length))
    expect(most).toBe(2)
  })

  it('D6.turns: what stops answering while it waits for its turn is not saved, and delays the others no longer', async () => {
    const silent = new Set<string>()
    const probe: Probe = async (_, { address }) =>
      silent.has(address) ? { outcome: 'failure', message: 'no answer' } : { outcome: 'success' }
    await start('a', a, probe)
    await vi.waitFor(() => expect(stopped.size).toBe(2))
    const waiting = uids.filter(uid => !stopped.has(uid))
    silent.add(addressOf(waiting[0] ?? ''))
    await sleep(3_500)
    release()
    await vi.waitFor(() => expect(generations()).toBe(uids.length - 1))
    expect(a.counts.dumps).toBe(uids.length - 1)
  })
})
