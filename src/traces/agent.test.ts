import { describe, expect, it } from 'vitest'
import { deathSpans, grantSpans, lastSaveSpans, takeoverSpans } from './agent.ts'
import { attributesOf, rootOf, spanIdOf, traceOfChange } from './span.ts'

const lost = { namespace: 'shop', name: 'web-a', uid: 'a', owner: 'u' }
const heir = { namespace: 'shop', name: 'web-b', uid: 'b', owner: 'u' }
const of = (epoch: number) => ({ name: 'web-0', epoch })
/** The trace of the change of hands that ends epoch 3. */
const traceId = traceOfChange({ owner: 'u', slot: 'web-0', epoch: 4 })

const death = {
  diedAt: 1_000.25,
  declaredAt: 1_002,
  toldAt: 1_009,
  redirectMicroseconds: 800,
  isByItself: true,
}
const use = { number: 2, answer: 'Accepted', heir: 'web-b', from: 1_010, to: 1_013 }
const steps = [
  { name: 'enter', from: 0, to: 1 },
  { name: 'thaw', from: 1, to: 4 },
]
const save = { from: 900, to: 990, generation: 8, bytes: 1_000, frozenSeconds: 0.01 }

describe('the spans of agents', () => {
  it('are in the trace that the operator derives from the status, below its root', () => {
    const all = [
      ...deathSpans('n1', lost, of(3), death),
      ...grantSpans('n1', lost, of(3), use),
      ...lastSaveSpans('n1', lost, of(3), save),
      ...takeoverSpans('n2', heir, of(4), { began: 1_020, steps, generation: 8 }),
    ]
    expect(all.map(({ name, from, to }) => [name, from, to])).toEqual([
      ['detect and report the death', 1_000.25, 1_009],
      ['redirect connections to the heir', 1_000.25, 1_001.05],
      ['use the grant of the heir', 1_010, 1_013],
      ['stop and save the last changes', 900, 990],
      ['take over', 1_020, 1_024],
      ['find the processes of the pod', 1_020, 1_021],
      ['thaw', 1_021, 1_024],
    ])
    expect(all.every(span => span.traceId === traceId)).toBe(true)
    expect(new Set(all.map(({ spanId }) => spanId)).size).toBe(all.length)
    const takeover = all[4]?.spanId
    expect(all.map(({ parentId }) => parentId)).toEqual([
      ...Array(5).fill(rootOf(traceId)),
      ...[takeover, takeover],
    ])
    expect(all.every(({ failure }) => failure === undefined)).toBe(true)
  })

  it('begin with the declaration if the sentinel has seen no death', () => {
    const spans = deathSpans('n1', lost, of(3), { ...death, diedAt: undefined, isByItself: false })
    expect(spans).toMatchObject([
      {
        name: 'end the app and report it',
        from: 1_002,
        to: 1_009,
        attributes: { 'understudy.by_itself': false, 'k8s.node.name': 'n1' },
      },
    ])
  })

  it('tell a failure, cut, and each try is a span of its own', () => {
    const failed = takeoverSpans('n2', heir, of(4), { began: 5, steps, failure: 'x'.repeat(999) })
    expect(failed[0]?.failure).toHaveLength(256)
    const again = takeoverSpans('n2', heir, of(4), { began: 500, steps, generation: 8 })
    expect(again[0]?.spanId).not.toBe(failed[0]?.spanId)
    expect(grantSpans('n1', lost, of(3), { ...use, answer: 'Refused' })[0]?.failure).toBe('Refused')
  })

  it('are none while nobody knows who owns the slot; the Lease has the first word', () => {
    const { owner: _, ...orphan } = lost
    expect(deathSpans('n1', orphan, of(3), death)).toEqual([])
    expect(grantSpans('n1', orphan, of(3), use)).toEqual([])
    expect(lastSaveSpans('n1', orphan, of(3), save)).toEqual([])
    expect(takeoverSpans('n1', orphan, of(4), { began: 1, steps })).toEqual([])
    expect(deathSpans('n1', orphan, { ...of(3), owner: 'u' }, death)[0]?.traceId).toBe(traceId)
  })
})

describe('ids and attributes', () => {
  it('have the form that OpenTelemetry wants, and no two lists of words have one id', () => {
    expect(traceId).toMatch(/^[0-9a-f]{32}$/)
    expect(rootOf(traceId)).toMatch(/^[0-9a-f]{16}$/)
    expect(spanIdOf(traceId, 'ab', 'c')).not.toBe(spanIdOf(traceId, 'a', 'bc'))
  })

  it('leave out what is unknown, and bound the names of tenants', () => {
    const { short, long, ...others } = attributesOf({
      short: 'a',
      long: 'é'.repeat(5_000),
      none: undefined,
      zero: 0,
    })
    expect({ short, ...others }).toEqual({ short: 'a', zero: 0 })
    expect(long).toHaveLength(256)
  })
})
