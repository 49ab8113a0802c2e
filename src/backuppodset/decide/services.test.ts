import { describe, expect, it } from 'vitest'
import type { ServicesView } from '../../slot/decide/endpoints-view.ts'
import type { SlotMemory } from '../../slot/decide/memory-view.ts'
import { makeCopy, makeLease, makeSlot } from '../../slot/testing/slots.ts'
import { makeMemorySnapshot, makePrimary, makeUnderstudy } from '../testing/memory.ts'
import { services } from './services.ts'

describe('the endpoints of a set that keeps memory', () => {
  const ports = [{ name: 'http', port: 80, targetPort: 8080, protocol: 'TCP' }] as const
  const p0 = makePrimary('p0', 0, { ready: true })
  const h0 = makeUnderstudy('h0')
  const lease = makeLease(p0, { holders: ['n-h0'] })
  const copies = [makeCopy(lease, h0, 'Frozen')]
  const there = { slot: 0, ip: '10.0.0.1', pod: 'p0', uid: p0.uid, node: 'n-p0' }
  const present: ServicesView = {
    services: [{ name: 'web', uid: 'service-uid', resourceVersion: '1', type: 'ClusterIP', ports }],
    slices: [
      {
        ...{ name: 'web-understudy-0', service: 'web', resourceVersion: '2', family: 'IPv4' },
        ...{ endpoints: [there], ports: ports.map(({ port: _, ...port }) => port) },
      },
    ],
    addresses: new Map([[p0.uid, '10.0.0.1']]),
  }
  const wish = {
    replicas: 1,
    hotBackups: 1,
    service: { name: 'web', perSlot: false, type: 'ClusterIP', ports } as const,
  }
  const changed = (slot: SlotMemory, pod = p0) =>
    services(makeMemorySnapshot(wish, [pod, h0], [slot]), present, []).map(action =>
      action.type === 'applyEndpoints' ? action.endpoints : action.type,
    )

  it('are those of the primaries', () => {
    expect(changed(makeSlot(lease, copies))).toEqual([])
  })

  it('a Service of another type, or with other ports, is changed', () => {
    const slots = [makeSlot(lease, copies)]
    const planned = (service: object) =>
      services(
        makeMemorySnapshot({ ...wish, service: { ...wish.service, ...service } }, [p0, h0], slots),
        present,
        [],
      ).flatMap(action => (action.type === 'applyService' ? [[action.serviceType, action.version]] : []))
    expect(planned({})).toEqual([])
    expect(planned({ type: 'LoadBalancer' })).toEqual([['LoadBalancer', '1']])
    expect(planned({ ports: [{ ...ports[0], port: 81 }] })).toEqual([['ClusterIP', '1']])
  })

  it('D7.stranger: leave out a primary in which the kubelet has started another app, while the memory is kept', () => {
    expect(changed(makeSlot(lease, copies, { replacedSince: 900 }))).toEqual([[]])
    // Without any memory, the app begins another incarnation there.
    expect(changed(makeSlot(lease, [], { replacedSince: 900 }))).toEqual([])
  })

  it('keep a dead primary that its agent has shut off: connections are redirected there', () => {
    const dead = makePrimary('p0', 0, { ready: true }, { died: true })
    expect(changed(makeSlot(lease, copies, { replacedSince: 900 }), dead)).toEqual([])
  })

  it('keep a dead primary while the operator waits for what its node has saved last: an empty list would be refused for a second', () => {
    const unready = { ready: false } as const
    const source = { ...makeCopy(lease, p0, undefined).report, role: 'source' } as const
    const behind = [makeCopy(lease, h0, 'Frozen', { generation: source.generation - 2 })]
    const dead = { source, sourceSeenAt: 990, vacantSince: 999 }
    const died = makePrimary('p0', 0, unready, { died: true })
    expect(changed(makeSlot(lease, behind, dead), died)).toEqual([])
    // Two seconds later it waits no more. And nothing answers for a pod that only is not ready.
    expect(changed(makeSlot(lease, behind, { ...dead, vacantSince: -1_001 }), died)).toEqual([[]])
    expect(changed(makeSlot(lease, behind, dead), makePrimary('p0', 0, unready))).toEqual([[]])
  })
})
