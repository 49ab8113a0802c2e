import { describe, expect, it } from 'vitest'
import type { NodeReport, NodeReportStatus, SlotReport } from '../../api/node-report.ts'
import { parseSet } from '../../api/parse.ts'
import { type SlotLease, slotLeaseBody } from '../../api/slot-lease.ts'
import { createFakeClock } from '../../kube/clock.ts'
import type { Lease } from '../../kube/resources.ts'
import { createStore } from '../../kube/store.ts'
import { makeLease, makePrimary } from '../testing/memory.ts'
import { leaseIndexes, observeMemory } from './observe.ts'
import { createReports, reportIndexes } from './reports.ts'

const parsed = parseSet({
  metadata: { name: 'bps', namespace: 'default', uid: 'set', resourceVersion: '1' },
  spec: {
    replicas: 1,
    checkpoint: {},
    template: { spec: { containers: [{ name: 'app', image: 'web:1' }] } },
  },
})
if (!parsed.ok || parsed.set.memory === undefined) throw new Error('the set keeps no memory')
const set = { ...parsed.set, memory: parsed.set.memory }

async function observed(lease: SlotLease, reports: Readonly<Record<string, Partial<SlotReport>>>) {
  const clock = createFakeClock()
  const leases = createStore<Lease>({ indexes: leaseIndexes })
  const body = slotLeaseBody(lease)
  leases.replace([{ ...body, metadata: { ...body.metadata, uid: 'lease', resourceVersion: '1' } }], 1n)
  const store = createStore<NodeReport>({ indexes: reportIndexes })
  const { namespace, set: name, slot, life } = lease
  store.replace(
    Object.entries(reports).map(([node, over]) => ({
      metadata: { name: node, uid: node, resourceVersion: '1' },
      status: {
        checks: [],
        ready: true,
        slots: [{ namespace, set: name, slot, life, role: 'holder', generation: 1, usable: 'Cold', ...over }],
      } as unknown as NodeReportStatus,
    })),
    1n,
  )
  return observeMemory(set, () => undefined, {
    leases,
    reports: createReports(store, clock),
    clock,
    isDeleted: () => false,
    claims: { of: () => [] },
    isPermitted: () => true,
  }).slots.get(lease.slot)
}

describe('what is believed of a slot', () => {
  const lease = makeLease(makePrimary('p0', 0), { node: 'n1', holders: ['n2'] })

  it('is what the nodes say that its Lease names', async () => {
    const slot = await observed(lease, {
      n1: { role: 'source', generation: 7 },
      n2: { generation: 6 },
      // It keeps nothing of this slot, but says so to draw the memory, and the pods that get it, to itself.
      x: { generation: 900, takenAt: '2099-01-01T00:00:00Z' },
    })
    expect(slot?.source).toMatchObject({ generation: 7 })
    expect(slot?.copies.map(({ node }) => node)).toEqual(['n2'])
  })

  it('a node that was called, and has not looked again, is still the one that had a copy', async () => {
    const slot = await observed({ ...lease, node: 'n2', holders: [] }, { n2: { generation: 6 } })
    expect(slot?.copies.map(({ node }) => node)).toEqual(['n2'])
  })
})
