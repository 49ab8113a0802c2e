import { describe, expect, it } from 'vitest'
import type { NodeReport, SlotReport } from '../../api/node-report.ts'
import { numberedSlotLeaseBody } from '../../api/numbered-slot.ts'
import { createFakeClock } from '../../kube/clock.ts'
import type { Lease } from '../../kube/resources.ts'
import { createStore } from '../../kube/store.ts'
import { isStorm } from '../decide/fence/storm.ts'
import { makeReport, makeSlotReport } from '../testing/objects.ts'
import { makeHolder, makeLease } from '../testing/slots.ts'
import { makeFence } from '../testing/votes.ts'
import { createReports, reportIndexes } from './reports.ts'
import { createStorm } from './storm.ts'

it.each([
  [0, 0, false],
  [1, 1, false],
  [1, 2, false],
  [2, 2, true],
  [2, 3, true],
  [2, 4, false],
  [3, 5, true],
])('%i silent nodes of %i with primaries: a storm is %s', (silent, armed, is) => {
  expect(isStorm(silent, armed)).toBe(is)
})

/** Primaries on the nodes n0, n1 and so on, each with the voter `v`. */
function stand(count: number) {
  const clock = createFakeClock()
  const store = createStore<NodeReport>({ indexes: reportIndexes })
  const leases = createStore<Lease>()
  const reports = createReports(store, clock)
  const storm = createStorm(reports, clock)
  store.subscribe(reports.note)
  store.subscribe(storm.noteReport)
  leases.subscribe(storm.noteLease)
  let version = 1
  const next = () => `${version++}`
  const leaseOf = (slot: number, term = 1, isArmed = true) => {
    const lease = makeLease(makeHolder(`p${slot}`, slot), { node: `n${slot}`, holders: ['v'] })
    return { ...lease, fence: makeFence(lease, { term, isArmed }) }
  }
  const put = (lease: ReturnType<typeof leaseOf>) => {
    const { metadata, spec } = numberedSlotLeaseBody(lease)
    leases.upsert({ metadata: { ...metadata, uid: lease.name, resourceVersion: next() }, spec })
  }
  for (let slot = 0; slot < count; slot += 1) put(leaseOf(slot))
  const write = (
    node: string,
    about: readonly number[] = [],
    said: Partial<SlotReport> = { silentTerm: 1 },
  ) => {
    const slots = about.map(slot => {
      const { namespace, name, incarnation } = leaseOf(slot)
      return makeSlotReport({ namespace, name, incarnation, ...said })
    })
    const { metadata, status } = makeReport(node, { slots, updatedAt: new Date(clock.now()).toISOString() })
    store.upsert({ metadata: { ...metadata, resourceVersion: next() }, status })
  }
  return { clock, storm, write, put, leaseOf, remove: (slot: number) => leases.remove(`default/bps-${slot}`) }
}

describe('a storm', () => {
  it('D8.blind: holds takeovers while most nodes with primaries are silent, and for a while after', async () => {
    const { clock, storm, write } = stand(3)
    write('v', [0])
    expect(storm.heldForMs()).toBe(0)
    write('v', [0, 1])
    expect(storm.heldForMs()).toBe(1_000)
    await clock.advance(20_000)
    expect(storm.heldForMs()).toBe(30_000)
    await clock.advance(1_000)
    write('n1')
    await clock.advance(10_000)
    expect(storm.heldForMs()).toBe(19_000)
    await clock.advance(19_000)
    expect(storm.heldForMs()).toBe(0)
  })

  it('D8.suspect: begins with suspicions, so that it is known before the first statement', async () => {
    const { clock, storm, write } = stand(3)
    write('v', [0, 1], { suspectTerm: 1 })
    expect(storm.heldForMs()).toBe(250)
    // Their agents write once more before they are cut off.
    await clock.advance(100)
    write('n0')
    write('n1')
    expect(storm.heldForMs()).toBe(0)
    write('v', [0, 1])
    expect(storm.heldForMs()).toBe(1_000)
  })

  it('D8.suspect: is over at once where suspicions are taken back, and soon where their node has died with them', async () => {
    const { clock, storm, write } = stand(3)
    write('v', [0, 1], { suspectTerm: 1 })
    write('v')
    expect(storm.heldForMs()).toBe(0)
    write('v', [0, 1], { suspectTerm: 1 })
    await clock.advance(1_400)
    expect(storm.heldForMs()).toBe(250)
    await clock.advance(100)
    expect(storm.heldForMs()).toBe(0)
  })

  it('D8.brief: holds takeovers for a second if it was the error of one voter, which does not hear its peers', async () => {
    const { clock, storm, write } = stand(2)
    write('v', [0, 1])
    await clock.advance(900)
    expect(storm.heldForMs()).toBe(1_000)
    await clock.advance(100)
    write('n0')
    expect(storm.heldForMs()).toBe(900)
    await clock.advance(900)
    expect(storm.heldForMs()).toBe(0)
  })

  it('ends for nodes that are lost for good, and a node that was lost long before makes none', async () => {
    const { clock, storm, write } = stand(3)
    write('v', [0, 1])
    await clock.advance(60_000)
    expect(storm.heldForMs()).toBeLessThanOrEqual(30_000)
    await clock.advance(30_000)
    expect(storm.heldForMs()).toBe(0)
    write('w', [2])
    expect(storm.heldForMs()).toBe(0)
  })

  it('is over at once for a voter that errs: the agents of the primaries write on', async () => {
    const { clock, storm, write } = stand(2)
    write('v', [0])
    await clock.advance(10)
    write('n0')
    write('v', [0, 1])
    expect(storm.heldForMs()).toBe(0)
  })

  it('D8.blind: is none if a primary was ended because its set has no place for its slot', () => {
    const { storm, write, put, leaseOf } = stand(2)
    put({ ...leaseOf(1), retainedSince: '2030-01-01T00:00:00Z' })
    write('v', [0, 1])
    expect(storm.heldForMs()).toBe(0)
  })

  it('counts nodes, not primaries, and only primaries of this term that could be fenced', () => {
    const { storm, write, put, leaseOf } = stand(2)
    put({ ...leaseOf(1), node: 'n0' })
    write('v', [0, 1])
    expect(storm.heldForMs()).toBe(0)
    put(leaseOf(1, 2))
    write('w', [0, 1])
    expect(storm.heldForMs()).toBe(0)
    put(leaseOf(1, 1, false))
    write('x', [0, 1])
    expect(storm.heldForMs()).toBe(0)
  })

  it('forgets primaries and statements that are gone', () => {
    const other = stand(2)
    other.remove(1)
    other.write('v', [0, 1])
    expect(other.storm.heldForMs()).toBe(0)
    const third = stand(2)
    third.write('v', [0])
    third.write('v', [])
    third.write('v', [1])
    expect(third.storm.heldForMs()).toBe(0)
  })
})
