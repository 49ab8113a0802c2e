import { describe, expect, it } from 'vitest'
import type { SlotMemory } from '../../slot/decide/memory-view.ts'
import { makeCopy, makeSlot } from '../../slot/testing/slots.ts'
import { makeVotes } from '../../slot/testing/votes.ts'
import type { PodView } from '../snapshot.ts'
import { ofType, plan } from '../testing/decided.ts'
import { api, copies, fenced, h0, lease, nodes, p0, seen } from '../testing/fenced.ts'
import { makePrimary } from '../testing/memory.ts'

describe('a primary of a paused set', () => {
  const back = { votes: makeVotes(lease, { silent: new Set([api, ...nodes]), isHeard: true, unheardMs: 10 }) }
  const paused = (slot: SlotMemory, pods: readonly PodView[] = [p0, h0]) => {
    const s = seen(slot, pods)
    return { ...s, set: { ...s.set, paused: true } }
  }

  it('gets a new term once its node is there again: no other pod takes over, although one has its memory', () => {
    const s = paused(makeSlot(lease, copies, back))
    expect(ofType(s, 'writeSlot')).toMatchObject([
      {
        lease: { holder: { name: 'p0' }, fence: { term: 2, version: 1, isArmed: false, isRevoked: false } },
        stateLost: false,
      },
    ])
    expect(ofType(s, 'promote')).toEqual([])
  })

  it('has armed voters as soon as it has acknowledged them: a pod that is deleted by force is waited for', () => {
    const unarmed = { ...lease, fence: { ...lease.fence, term: 2, isArmed: false } }
    const acknowledges = { role: 'source', acknowledged: { term: 2, version: 1 } } as const
    const told = makeSlot(unarmed, copies, {
      votes: makeVotes(unarmed, { statedAt: undefined, silent: new Set() }),
    })
    expect(ofType(paused(told), 'writeSlot')).toEqual([])
    const acknowledged = { ...told, source: { ...makeCopy(lease, p0, undefined).report, ...acknowledges } }
    expect(ofType(paused(acknowledged), 'writeSlot')).toMatchObject([
      { lease: { fence: { term: 2, version: 1, isArmed: true } } },
    ])
  })

  it.each<[string, Partial<typeof lease>, readonly PodView[]]>([
    ['is gone: it may run where no agent can stop it', {}, [h0]],
    ['has ended', {}, [makePrimary('p0', 0, {}, { died: true }), h0]],
    ['is to end', { ending: p0.uid }, [p0, h0]],
    ['has left its slot, which is retained', { retainedSince: '2026-01-01T00:00:00Z' }, [p0, h0]],
    ['is saved for a suspension', { suspended: true }, [p0, h0]],
  ])('keeps its term if it %s', (_, over, pods) => {
    const s = paused(makeSlot({ ...lease, ...over }, copies, back), pods)
    expect(ofType(s, 'writeSlot')).toEqual([])
    expect(plan(s).requeueAfterMs).toBeUndefined()
  })

  it('waits while its node is silent, and the set says when it looks again', () => {
    const s = paused(makeSlot(lease, copies, fenced))
    expect(ofType(s, 'writeSlot')).toEqual([])
    expect(plan(s).requeueAfterMs).toBe(lease.fence.timeoutMs)
  })

  it('keeps its term while it serves', () => {
    const s = paused(makeSlot(lease, copies))
    expect(ofType(s, 'writeSlot')).toEqual([])
    expect(plan(s).requeueAfterMs).toBeUndefined()
  })
})
