/** Forged histories of Migrations. */
import type { History, Move } from '../history.ts'
import {
  answersOf,
  at,
  basis,
  byTime,
  type Forgery,
  type Harmless,
  isAnswered,
  leaseOf,
  swap,
} from './forging.ts'
import { podOf } from './honest.ts'

const move = (atMs: number, more: Partial<Move>): Move => ({
  ...{ type: 'move', at: atMs, slot: 0, source: leaseOf(basis(), 1).uid, target: leaseOf(basis(), 2).uid },
  ...{ ended: 'Succeeded', phase: 'Succeeded', reason: 'Moved' },
  ...more,
})

/** The history, with a Lease of epoch 2 that says that its primary handed the slot over. */
function claimed(history: History): History {
  const lease = leaseOf(history, 2)
  return swap(history, lease, { ...lease, handedOverBy: leaseOf(history, 1).uid })
}

/** The history, in which the second primary of slot 0 has every addition of the first one. */
function handedOver(): History {
  const history = claimed(basis())
  const last = at(answersOf(history, 1), -1).answer.count
  const more = last + 1 - at(answersOf(history, 2), 0).answer.count
  return history.map(entry =>
    isAnswered(entry) && entry.slot === 0 && entry.answer.pod !== podOf(0, 1)
      ? { ...entry, answer: { ...entry.answer, count: entry.answer.count + more } }
      : entry,
  )
}

const switchedAt = () => leaseOf(basis(), 2).at

const and = (history: History, entry: Move): History => [...history, entry].toSorted(byTime)

export const moves: readonly Forgery[] = [
  {
    title: 'a slot was handed over, and its successor lacks additions of the last second',
    rule: 'LostByMove',
    history: () => claimed(basis()),
  },
  {
    title: 'a Migration says that it has moved a pod that was lost',
    rule: 'FalseVerdict',
    history: () => and(basis(), move(switchedAt() + 100, {})),
  },
  {
    title: 'a Migration says that it has moved a slot to a pod that does not have it',
    rule: 'FalseVerdict',
    history: () => and(handedOver(), move(switchedAt() + 100, { target: 'another' })),
  },
  {
    title: 'a Migration says that its source was lost, which handed its slot over',
    rule: 'FalseVerdict',
    history: () =>
      and(handedOver(), move(switchedAt() + 100, { ended: 'Failed', phase: 'Failed', reason: 'SourceLost' })),
  },
  {
    title: 'a Migration was called off, and its slot changes hands two seconds later',
    rule: 'FalseVerdict',
    history: () =>
      and(handedOver(), move(switchedAt() - 2_000, { ended: 'CalledOff', phase: 'Stopping', reason: 'x' })),
  },
  {
    title: 'a Migration does not end',
    rule: 'MoveUnfinished',
    history: () => and(basis(), move(switchedAt() + 100, { ended: 'Unfinished', phase: 'Preparing' })),
  },
]

export const harmlessMoves: readonly Harmless[] = [
  { title: 'a move', history: () => and(handedOver(), move(switchedAt() + 100, {})) },
  {
    title: 'the loss of a pod that was to move',
    history: () =>
      and(basis(), move(switchedAt() + 100, { ended: 'Failed', phase: 'Failed', reason: 'SourceLost' })),
  },
  {
    title: 'the loss of the pod that a slot had been handed over to, before it served',
    history: () => {
      const history = handedOver()
      const next = leaseOf(history, 3)
      const at = leaseOf(history, 2).at + 50
      return and(
        swap(history, next, { ...next, at }),
        move(at + 900, { ended: 'Failed', reason: 'SourceLost' }),
      )
    },
  },
  {
    title: 'a Migration that was called off, and a roll that hands the slot over later, to another pod',
    history: () =>
      and(
        handedOver(),
        move(switchedAt() - 3_000, { ended: 'CalledOff', phase: 'Preparing', target: 'another' }),
      ),
  },
  {
    title: 'a successor that did not serve after the switch',
    history: () =>
      and(handedOver(), move(switchedAt() + 900, { ended: 'Failed', phase: 'Failed', reason: 'NotServing' })),
  },
  {
    title: 'a Migration that was called off while the Lease was being written',
    history: () => and(handedOver(), move(switchedAt() - 300, { ended: 'CalledOff', phase: 'Stopping' })),
  },
  {
    title: 'a Migration that was called off long before the pod was lost',
    history: () => and(basis(), move(switchedAt() - 4_000, { ended: 'CalledOff', phase: 'Preparing' })),
  },
  {
    title: 'the second Migration of a pod, which was called off before the first one moved it',
    history: () =>
      and(
        and(
          handedOver(),
          move(switchedAt() - 2_000, { ended: 'CalledOff', phase: 'Pending', target: undefined }),
        ),
        move(switchedAt() + 100, {}),
      ),
  },
]
