import { describe, expect, it } from 'vitest'
import { apiServerVoter, nodeVoter } from '../../api/fence.ts'
import { type NodeReport, type SlotReport, silencesAnnotation } from '../../api/node-report.ts'
import { createFakeClock } from '../../kube/clock.ts'
import { createStore } from '../../kube/store.ts'
import { makeReport, makeSlotReport } from '../testing/objects.ts'
import { makeHolder, makeLease } from '../testing/slots.ts'
import { createReports, reportIndexes } from './reports.ts'
import { createSince } from './since.ts'
import { votesOf } from './votes.ts'

const run = (digit: string) => digit.repeat(16)
const plain = makeLease(makeHolder('p0', 0), { node: 'n1', holders: ['n2', 'n3'] })
const api = apiServerVoter({ uid: 'uid-n1', silences: 0 })
const [second, third] = [nodeVoter('n2', run('2')), nodeVoter('n3', run('3'))]
const lease = {
  ...plain,
  fence: {
    term: 4,
    version: 1,
    voters: [api, second, third],
    timeoutMs: 3_000,
    isArmed: true,
    isRevoked: false,
  },
}

/** The reports of three nodes, as the operator's cache shows them. */
function stand() {
  const clock = createFakeClock()
  const store = createStore<NodeReport>({ indexes: reportIndexes })
  const reports = createReports(store, clock)
  store.subscribe(reports.note)
  const since = createSince(clock)
  let version = 1
  const next = () => `${version++}`
  const write = (node: string, slots: readonly SlotReport[] = [], of = node.slice(1)) => {
    const heartbeats = { port: 1, run: run(of), key: '' }
    const { metadata, status } = makeReport(node, {
      slots,
      heartbeats,
      updatedAt: new Date(clock.now()).toISOString(),
    })
    const annotations = store.get(node)?.metadata.annotations ?? {}
    store.upsert({ metadata: { ...metadata, annotations, resourceVersion: next() }, status })
  }
  /** The operator's own write. */
  const state = (silences: number) => {
    const report = store.get('n1')
    if (report === undefined) throw new Error('no report')
    const annotations = { [silencesAnnotation]: `${silences}` }
    store.upsert({
      ...report,
      metadata: { ...report.metadata, annotations, resourceVersion: next() },
    })
  }
  const look = (of = lease) => votesOf(of, reports.ofSet('default/bps'), { reports, clock }, since.pass())
  write('n1')
  return { clock, write, state, look, reports }
}
const says = (silentTerm: number) => [makeSlotReport({ silentTerm })]
const suspects = (suspectTerm: number) => [makeSlotReport({ suspectTerm })]

describe('statements about a primary', () => {
  it('are those of voters in this term, or in a later one', () => {
    const { write, look } = stand()
    expect(look()?.silent).toEqual(new Set())
    write('n2', says(3))
    write('n3', says(4))
    expect(look()?.silent).toEqual(new Set([third]))
    write('n2', says(5))
    expect(look()?.silent).toEqual(new Set([second, third]))
  })

  it('D8.suspect: follow suspicions of the same voters in this term, which promise nothing and end with a heartbeat', async () => {
    const { clock, write, look } = stand()
    write('n1')
    write('n2', suspects(3))
    write('n4', suspects(4))
    expect(look()?.suspectedAt).toBeUndefined()
    write('n3', suspects(4))
    look()
    await clock.advance(20_000)
    write('n2', suspects(4))
    const suspectedAt = clock.monotonic()
    expect(look()).toMatchObject({ silent: new Set(), suspectedAt: undefined, statedAt: undefined })
    await clock.advance(500)
    // That of another node, which has stated nothing, may be old.
    write('n2', says(4))
    expect(look()).toMatchObject({ suspectedAt, statedAt: suspectedAt + 500 })
    write('n2')
    expect(look()).toMatchObject({ suspectedAt: undefined, statedAt: undefined })
  })

  it('D8.over: a voter whose run is over counts as silent once its last answer has ended, but states nothing', async () => {
    const { clock, write, look } = stand()
    write('n2')
    write('n3')
    look()
    write('n2', [], 'f')
    expect(look()?.silent).toEqual(new Set())
    await clock.advance(3_000)
    write('n1')
    expect(look()).toMatchObject({ silent: new Set([second]), statedAt: undefined })
    // Another pod is to have the slot.
    const revoked = { ...lease, fence: { ...lease.fence, isRevoked: true } }
    expect(look(revoked)?.statedAt).toBeDefined()
  })

  it('the API server is over as a voter when another report, or none, is in the place of the one that it answered by', async () => {
    const { clock, write, look } = stand()
    write('n2')
    write('n3')
    const gone = apiServerVoter({ uid: 'uid-of-a-deleted-report', silences: 0 })
    const of = { ...lease, fence: { ...lease.fence, voters: [gone, second, third] } }
    expect(look(of)?.silent).toEqual(new Set())
    await clock.advance(3_000)
    expect(look(of)?.silent).toEqual(new Set([gone]))
    expect(look()?.silent).toEqual(new Set())
  })

  it('do not count from a sentinel that is another voter now, or about another incarnation', () => {
    const { write, look } = stand()
    write('n2', says(4), 'f')
    write('n3', [makeSlotReport({ silentTerm: 4, incarnation: 'ffffffff' })])
    expect(look()).toMatchObject({ statedAt: undefined })
  })

  it('of the API server count once the agent has been silent for the whole time', async () => {
    const { clock, write, state, look } = stand()
    write('n2', says(4))
    await clock.advance(2_000)
    state(1)
    expect(look()?.silent).toEqual(new Set([second]))
    await clock.advance(1_000)
    expect(look()?.silent).toEqual(new Set([second, api]))
  })

  it('of the API server stay when the agent writes again, where no holder says that the primary is silent', async () => {
    const { clock, write, state, look } = stand()
    write('n2')
    write('n3')
    look()
    await clock.advance(3_000)
    state(1)
    write('n1')
    expect(look()).toMatchObject({ silent: new Set([api]), statedAt: undefined })
    write('n2', says(4))
    expect(look()?.silent).toEqual(new Set([second]))
  })

  it('of the API server do not count about a report that was made again', async () => {
    const { clock, look } = stand()
    await clock.advance(9_000)
    const other = apiServerVoter({ uid: 'uid-before', silences: 0 })
    expect(look({ ...lease, fence: { ...lease.fence, voters: [other, second] } })?.silent).toEqual(new Set())
  })

  it('tell since when this process knows them, in the same term', async () => {
    const { clock, write, look } = stand()
    const start = clock.monotonic()
    look()
    await clock.advance(500)
    write('n2', says(4))
    look()
    await clock.advance(500)
    expect(look()).toMatchObject({ termSeenAt: start, statedAt: start + 500 })
    expect(look({ ...lease, fence: { ...lease.fence, term: 5 } })).toMatchObject({ statedAt: undefined })
  })

  it('tell when a voter whose sentinel was restarted will count as silent', async () => {
    const { clock, write, look } = stand()
    write('n2', [], 'f')
    const start = clock.monotonic()
    expect(look()).toMatchObject({ overAt: start + 3_000, silent: new Set() })
    await clock.advance(1_000)
    write('n3', [], 'f')
    expect(look()).toMatchObject({ overAt: start + 3_000, silent: new Set() })
    await clock.advance(2_000)
    expect(look()).toMatchObject({ overAt: start + 4_000, silent: new Set([second]) })
    await clock.advance(1_000)
    expect(look()).toMatchObject({ overAt: undefined, silent: new Set([second, third]) })
  })

  it('are none without voters', () => {
    expect(stand().look({ ...lease, fence: { ...lease.fence, version: 0, voters: [] } })).toBeUndefined()
  })
})

describe('a primary is heard again', () => {
  it('once its agent has written after a whole time-out, so that it was no last write', async () => {
    const { clock, write, look } = stand()
    write('n2', says(4))
    look()
    await clock.advance(1_000)
    write('n1')
    expect(look()).toMatchObject({ isHeard: false, unheardMs: 0 })
    await clock.advance(2_500)
    write('n1')
    expect(look()).toMatchObject({ isHeard: true })
  })

  it('and not by what the operator writes', async () => {
    const { clock, write, state, look, reports } = stand()
    write('n2', says(4))
    look()
    await clock.advance(4_000)
    state(1)
    expect(look()).toMatchObject({ isHeard: false, unheardMs: 4_000 })
    expect([reports.silentFor('n1'), reports.unheardFor('n1')]).toEqual([4_000, 4_000])
  })
})

it('clocks of nodes say nothing about their silence: a new process begins to count', async () => {
  const clock = createFakeClock()
  const store = createStore<NodeReport>({ indexes: reportIndexes })
  const reports = createReports(store, clock)
  const start = clock.monotonic()
  const old = makeReport('n1', { updatedAt: '2000-01-01T00:00:00Z' })
  reports.note({ type: 'added', object: old, initial: true })
  expect(reports.silentFor('n1')).toBeGreaterThan(1e9)
  expect(reports.unheardFor('n1')).toBe(0)
  await clock.advance(10)
  expect(reports.hasWrittenSince('n1', start - 1)).toBe(false)
  reports.note({ type: 'updated', old, object: makeReport('n1'), initial: false })
  expect(reports.hasWrittenSince('n1', start)).toBe(true)
  expect(reports.hasWrittenSince('n2', start)).toBe(false)
})
