import { describe, expect, it, vi } from 'vitest'
import { labels } from '../../api/labels.ts'
import type { Probe } from '../../probe/probe.ts'
import type { FakeCluster } from '../testing/fake/cluster.ts'
import type { FakeMemory } from '../testing/fake/memory.ts'
import { called, podOf, useTwoNodes } from '../testing/fake/two-nodes.ts'

describe('the agents of two nodes: probes', () => {
  let cluster: FakeCluster
  let a: FakeMemory
  let b: FakeMemory
  const { start, serving, untilFrozen } = useTwoNodes(made => {
    ;({ cluster, a, b } = made)
  })

  it('D6.probes: end a primary that does not answer any more, and its successor likewise', async () => {
    const livenessProbe = { tcpSocket: { port: 80 }, failureThreshold: 1 }
    cluster.writePolicy({ liveness: { periodMs: 50, failureThreshold: 2 } })
    cluster.put('a', podOf('p', 'primary', { probes: { livenessProbe } }))
    cluster.put('b', podOf('h', 'hotbackup', { probes: { livenessProbe } }))
    let hangs = false
    const probe: Probe = async () =>
      hangs ? { outcome: 'failure', message: 'no answer' } : { outcome: 'success' }
    await start('a', a, probe)
    await start('b', b, probe)
    await untilFrozen('one')
    hangs = true
    const lost = { status: 'False', reason: 'Died', message: expect.stringContaining('liveness') }
    await vi.waitFor(() => expect(serving('a', 'p')).toMatchObject(lost))
    expect(a.running.has('uid-p')).toBe(false)

    hangs = false
    cluster.setLease(called())
    await vi.waitFor(() => expect(serving('b', 'h')).toMatchObject({ status: 'True' }))
    hangs = true
    await vi.waitFor(() => expect(serving('b', 'h')).toMatchObject(lost))
  })

  it('D6.probes: end a promoted primary that does not answer, also when its set keeps no memory any more', async () => {
    let hangs = false
    const probe: Probe = async () =>
      hangs ? { outcome: 'failure', message: 'no answer' } : { outcome: 'success' }
    await start('a', a, probe)
    await start('b', b, probe)
    await untilFrozen('one')
    cluster.setLease(called())
    await vi.waitFor(() => expect(serving('b', 'h')).toMatchObject({ status: 'True' }))
    // The state that the operator leaves: by its label the pod is a primary, and its slot has no Lease.
    const livenessProbe = { tcpSocket: { port: 80 }, periodSeconds: 1, failureThreshold: 1 }
    const promoted = podOf('h', 'hotbackup', { probes: { livenessProbe } })
    cluster.put('b', {
      ...promoted,
      metadata: {
        ...promoted.metadata,
        labels: { ...promoted.metadata.labels, [labels.type]: 'primary', [labels.slot]: '0' },
      },
      status: { ...promoted.status, conditions: cluster.pod('b', 'h')?.status?.conditions ?? [] },
    })
    for (const each of cluster.leases.list()) cluster.leases.remove(`default/${each.metadata.name}`)
    hangs = true
    await vi.waitFor(() =>
      expect(serving('b', 'h')).toMatchObject({
        ...{ status: 'False', reason: 'Died', message: expect.stringContaining('liveness') },
      }),
    )
    expect(b.running.has('uid-h')).toBe(false)
  })
})
