/** How histories are forged: parts of an honest one, and changes to it. */
import type { Rule } from '../check/violation.ts'
import type { Answer, Call, Entry, Epoch, History } from '../history.ts'
import { honest, plain, podOf } from './honest.ts'

export interface Forgery {
  readonly title: string
  readonly rule: Rule
  readonly history: () => History
}

/** A history of which no rule may say anything. */
export type Harmless = Omit<Forgery, 'rule'>

export interface Answered extends Call {
  readonly answer: Answer
}

export const isCall = (entry: Entry): entry is Call => entry.type === 'call'
export const isAnswered = (entry: Entry): entry is Answered => isCall(entry) && entry.answer !== undefined

/** Returns the answers of one epoch of slot 0, by number. */
export const answersOf = (history: History, epoch: number): Answered[] =>
  history
    .filter(isAnswered)
    .filter(({ slot, answer }) => slot === 0 && answer.pod === podOf(0, epoch))
    .toSorted((a, b) => a.answer.count - b.answer.count)

export const at = <T>(list: readonly T[], index: number): T => {
  const found = list.at(index)
  if (found === undefined) throw new Error(`the model made only ${list.length} of them`)
  return found
}

export const swap = (history: History, before: Entry, after: Entry): History =>
  history.map(entry => (entry === before ? after : entry))

export const endOf = (history: History): number =>
  at(
    history.flatMap(entry => (entry.type === 'end' ? [entry.at] : [])),
    0,
  )

/** Adds a call that is answered at `from`, in 10 ms. */
export const answeredAt = (
  history: History,
  from: number,
  answer: Answer,
  more: Partial<Call> = {},
): History => [
  ...history,
  {
    ...{ type: 'call', client: 'fresh', slot: 0, word: 'forged', start: from, end: from + 10, answer },
    ...more,
  },
]

export const basis = () => honest(plain)

export const leaseOf = (history: History, epoch: number): Epoch =>
  at(
    history.filter(
      (entry): entry is Epoch => entry.type === 'epoch' && entry.slot === 0 && entry.epoch === epoch,
    ),
    0,
  )

/** The same history, as if the copies were older: the additions of epoch 1 ended earlier than they did. */
export function older(history: History, ms: number): History {
  const cut = at(answersOf(history, 2), 0).answer.count
  return history.map(entry =>
    isAnswered(entry) &&
    entry.slot === 0 &&
    entry.answer.pod === podOf(0, 1) &&
    entry.answer.count >= cut - 200
      ? { ...entry, start: entry.start - ms, end: entry.end - ms }
      : entry,
  )
}

export const byTime = (a: Entry, b: Entry): number =>
  (a.type === 'call' ? a.start : a.at) - (b.type === 'call' ? b.start : b.at)
