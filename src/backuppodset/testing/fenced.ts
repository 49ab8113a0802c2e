/** A primary with a fence, a hot backup with its memory, and their slot. */
import type { MemoryView, SlotMemory } from '../../slot/decide/memory-view.ts'
import { makeCopy, makeLease } from '../../slot/testing/slots.ts'
import { makeFence, makeVotes, voteOf, votersOf } from '../../slot/testing/votes.ts'
import type { PodView } from '../snapshot.ts'
import { makeMemorySnapshot, makePrimary, makeUnderstudy } from './memory.ts'

export const p0 = makePrimary('p0', 0)
export const h0 = makeUnderstudy('h0')
export const plain = makeLease(p0, {
  heir: { name: 'h0', uid: h0.uid, ip: '10.0.0.1' },
  ...{ holders: ['n-h0'], kept: ['n-h0'] },
})
export const lease = { ...plain, fence: makeFence(plain) }
export const { api, nodes } = votersOf(lease)
export const copies = [makeCopy(lease, h0, 'Frozen')]
export const fenced = { votes: makeVotes(lease, { silent: new Set([api, ...nodes]) }) }

/** One primary, and a hot backup with its memory; every node votes. */
export function seen(slot: SlotMemory, pods: readonly PodView[] = [p0, h0], over: Partial<MemoryView> = {}) {
  const wish = { replicas: 1, hotBackups: 1 }
  const s = makeMemorySnapshot(wish, pods, [slot], { monotonicNow: 100_000 })
  if (s.memory === undefined) throw new Error('no memory')
  const view = (name: string) =>
    [name, { name, ready: true, problem: undefined, vote: voteOf(name) }] as const
  const memory = { ...s.memory, copies: 1, nodeTimeoutMs: 3_000, nodes: new Map(['n-p0', 'n-h0'].map(view)) }
  return { ...s, memory: { ...memory, ...over } }
}
