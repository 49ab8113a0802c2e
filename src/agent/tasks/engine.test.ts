import { setTimeout as sleep } from 'node:timers/promises'
import { describe, expect, it, vi } from 'vitest'
import { AgentError } from '../../api/agent-errors.ts'
import { podConditions } from '../../api/pod-contract.ts'
import type { FakeCluster } from '../testing/fake/cluster.ts'
import type { FakeMemory } from '../testing/fake/memory.ts'
import { atFirst, called, podOf, useTwoNodes } from '../testing/fake/two-nodes.ts'

describe('the agents of two nodes', () => {
  let cluster: FakeCluster
  let a: FakeMemory
  let b: FakeMemory
  const { start, stop, serving, frozen, untilFrozen, stopAll } = useTwoNodes(made => {
    ;({ cluster, a, b } = made)
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
    // The end of the earlier agent may have interrupted a dump.
    const { generation = 0 } = cluster.stores.get('a')?.latest(atFirst())?.manifest ?? {}
    // The earlier agent may have replaced its understudy's memory by a newer generation before.
    const { discards } = b.counts
    a.running.set('uid-p', 'two')
    await sleep(500)
    // The agents begin no work whose pace and limits are unknown, and remove nothing.
    expect([a.counts.dumps, b.counts.discards, frozen()?.word]).toEqual([dumps, discards, 'one'])
    expect(generation).toBeGreaterThan(0)
    await vi.waitFor(() =>
      expect(slotOf('a')).toMatchObject({ role: 'source', generation, reason: 'PolicyUnknown' }),
    )
    again.die('uid-p')
    await vi.waitFor(() => expect(serving('a', 'p')).toMatchObject({ status: 'False', reason: 'Died' }))
    cluster.setLease({ ...called(), holders: ['a'] })
    await vi.waitFor(() => expect(serving('b', 'h')).toMatchObject({ status: 'True' }))
    expect(b.running.get('uid-h')).toBe('one')
    // An operator that writes policies leads again.
    cluster.writePolicy({})
    await vi.waitFor(() => expect(slotOf('b')?.generation).toBeGreaterThan(generation))
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
    expect(serving('a', 'p')).toMatchObject({ status: 'True', reason: 'Died' })
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

  it('D7.let-go: a node that was let go mentions the slot until its last fetch has ended', async () => {
    await start('b', b)
    const store = cluster.stores.get('b')
    if (store === undefined) throw new Error('the agent has no store')
    const fetch = Promise.withResolvers<never>()
    const begin = vi.spyOn(store, 'begin').mockReturnValue(fetch.promise)
    const generations = () => cluster.reports.get('b')?.status?.slots.map(({ generation }) => generation)
    await start('a', a)
    await vi.waitFor(() => expect(begin).toHaveBeenCalled())
    const letGo = (epoch: number) =>
      cluster.setLease({ ...atFirst(), epoch, heir: undefined, holders: ['c'] })
    letGo(1)
    await sleep(300)
    expect(generations()).toEqual([0])
    fetch.reject(new AgentError('PeerUnreachable', 'a'))
    letGo(2)
    await vi.waitFor(() => expect(generations()).toEqual([]))
  })

  it('MP-34 count dumps, restores and their failures, each failure as often as an event tells it', async () => {
    const values = async ({ registry }: FakeMemory, name: string) =>
      ((await registry.getSingleMetric(name)?.get())?.values ?? []) as readonly {
        readonly value: number
        readonly metricName?: string
        readonly labels: Readonly<Record<string, string | number>>
      }[]
    const count = async (memory: FakeMemory, name: string, role?: string) =>
      (await values(memory, name))
        .filter(({ metricName, labels }) => metricName === `${name}_count` && labels['role'] === role)
        .reduce((sum, { value }) => sum + value, 0)
    const failures = async (memory: FakeMemory) => {
      const all = await values(memory, 'understudy_agent_failures_total')
      return Object.fromEntries(all.map(({ labels, value }) => [labels['reason'], value]))
    }
    const told = ({ events }: FakeMemory) =>
      Object.fromEntries([...Map.groupBy(events, reason => reason)].map(([key, all]) => [key, all.length]))
    a.atStop = () => {
      throw new AgentError('DumpFailed', 'torn')
    }
    b.broken.set('one', 'RestoreFailed')
    await start('a', a)
    await start('b', b)
    await vi.waitFor(() => expect(told(a)['DumpFailed']).toBeGreaterThan(0))
    a.atStop = () => undefined
    await vi.waitFor(() => expect(told(b)['RestoreFailed']).toBeGreaterThan(0))
    b.broken.clear()
    a.running.set('uid-p', 'two')
    await untilFrozen('two')
    await stopAll()
    const [ofA, ofB] = [await failures(a), await failures(b)]
    expect(ofA['DumpFailed']).toBe(told(a)['DumpFailed'])
    expect(ofB['RestoreFailed']).toBe(told(b)['RestoreFailed'])
    // The end of the agents may have interrupted one more.
    const dumps = await count(a, 'understudy_generation_size_bytes', 'source')
    expect(a.counts.dumps - (ofA['DumpFailed'] ?? 0) - dumps).toBeOneOf([0, 1])
    expect(await count(a, 'understudy_checkpoint_frozen_seconds')).toBe(dumps)
    const restores = await count(b, 'understudy_restore_seconds')
    expect(restores).toBeGreaterThan(0)
    expect(b.counts.restores - (ofB['RestoreFailed'] ?? 0) - restores).toBeOneOf([0, 1])
    expect(await count(b, 'understudy_restore_bytes')).toBe(restores)
  })

  it('go on where the agent before them ended', async () => {
    await start('a', a)
    const first = await start('b', b)
    await untilFrozen('one')
    await stop(first)
    expect(frozen()?.clone.stage).toBe('Frozen')
    const { restores, discards } = b.counts
    // A stopped source makes no new generation.
    await stopAll()
    const watches = new Map(a.watches)
    await start('b', b)
    await untilFrozen('one')
    expect(b.counts).toMatchObject({ restores, discards })
    const next = await start('a', a)
    await vi.waitFor(() => expect(a.watches).toEqual(watches))
    a.running.delete('uid-p')
    next.die('uid-p')
    expect(serving('a', 'p')).toMatchObject({ status: 'True', reason: 'Died' })
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
    expect(serving('b', 'h')).toMatchObject({ status: 'False', reason: 'Resuming' })
    const { restores } = b.counts
    await start('b', b)
    await vi.waitFor(() => expect(serving('b', 'h')).toMatchObject({ status: 'True' }))
    expect(b.counts.restores).toBe(restores)
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
    await vi.waitFor(() => expect(serving('a', 'p')?.reason).toBe('Died'))
  })
})
