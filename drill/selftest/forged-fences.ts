/** Forged histories of fences and of nodes that were paused. */
import type { Fault, History, Resume } from '../history.ts'
import { answersOf, at, basis, byTime, type Forgery, type Harmless, leaseOf, swap } from './forging.ts'

/** The history, in which the first primary of slot 0 was on a node that was paused. */
function paused(fate: Resume['fate'], epoch: number, resumedAt: number): History {
  const { uid, pod } = leaseOf(basis(), epoch)
  return [...basis(), { type: 'resume', at: resumedAt, slot: 0, uid, pod, stoppedMs: 4, fate }]
}

const endOfLast = () => at(answersOf(basis(), 3), -1).end

/** The history, with faults that explain fences of 300 ms each, and with a fence. */
export function fenced(epoch: number, ms: number, more: Partial<Fault> = {}): History {
  const { uid } = leaseOf(basis(), epoch)
  return [
    ...basis().map(entry => (entry.type === 'fault' ? { ...entry, fencedMs: 300, ...more } : entry)),
    { type: 'fenced', at: 2_000, uid, ms },
  ]
}

export const fences: readonly Forgery[] = [
  {
    title: 'a call that began before a pause is answered after it, and its successor had answered meanwhile',
    rule: 'OldEpoch',
    history: () => {
      const history = basis()
      const old = at(answersOf(history, 1), -1)
      const first = at(answersOf(history, 2), 0)
      const late = { ...old, end: first.end + 2_000 }
      const { uid, pod } = leaseOf(history, 1)
      return [
        ...swap(history, old, late),
        { type: 'resume', at: first.end + 1_000, slot: 0, uid, pod, stoppedMs: 4, fate: 'Gone' } as const,
      ].toSorted(byTime)
    },
  },
  {
    title: 'the primary of a node that was paused is never thawed',
    rule: 'Abandoned',
    history: () => paused('Stopped', 3, endOfLast() - 1_000),
  },
  {
    title: 'a former primary of a node that was paused stays, stopped',
    rule: 'Abandoned',
    history: () => paused('Stopped', 1, endOfLast() - 1_000),
  },
  {
    title: 'a former primary of a node that was paused runs, and answers no client',
    rule: 'Abandoned',
    history: () => paused('Runs', 1, endOfLast() - 1_000),
  },
  {
    title: 'a primary that no fault has hit is fenced for a second',
    rule: 'Fenced',
    history: () => fenced(3, 2_000),
  },
]

export const harmless: readonly Harmless[] = [
  { title: 'a fence until the next heartbeat', history: () => fenced(3, 250) },
  { title: 'the fence of a pod that a fault has hit', history: () => fenced(1, 2_000) },
  {
    title: 'a fence after a fault that allows any',
    history: () => fenced(3, 2_000, { fencedMs: undefined }),
  },
  { title: 'a primary that runs again after a pause', history: () => paused('Runs', 3, endOfLast() - 1_000) },
  {
    title: 'a former primary that is gone after a pause',
    history: () => paused('Gone', 1, endOfLast() - 1_000),
  },
]
