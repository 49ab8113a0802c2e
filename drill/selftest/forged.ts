/** Histories with one lie each, made from an honest one: the checker has to name the rule that is broken. */
import { stride } from '../check/facts.ts'
import { fences } from './forged-fences.ts'
import { moves } from './forged-moves.ts'
import {
  answeredAt,
  answersOf,
  at,
  basis,
  byTime,
  endOf,
  type Forgery,
  isAnswered,
  isCall,
  leaseOf,
  older,
  swap,
} from './forging.ts'
import { podOf } from './honest.ts'

const twice: readonly Forgery[] = [
  {
    title: 'the old primary answers once more after its successor',
    rule: 'OldEpoch',
    history: () => {
      const history = basis()
      const old = at(answersOf(history, 1), -1)
      const first = at(answersOf(history, 2), 0)
      return answeredAt(history, first.end + 500, { ...old.answer, count: old.answer.count + 1 })
    },
  },
  {
    title: 'the old primary answers only at its own address, to a client on its side of a cut',
    rule: 'OldEpoch',
    history: () => {
      const history = basis()
      const old = at(answersOf(history, 1), -1)
      const late = at(answersOf(history, 3), 5).end
      return answeredAt(
        history,
        late,
        { ...old.answer, count: old.answer.count + 50 },
        { client: 'direct', word: 'cut-off' },
      )
    },
  },
  {
    title: 'two pods in one epoch',
    rule: 'TwoHolders',
    history: () => {
      const history = basis()
      const lease = leaseOf(history, 2)
      return [...history, { ...lease, uid: 'another', pod: 'another' }].toSorted(byTime)
    },
  },
  {
    title: 'an epoch goes back',
    rule: 'TwoHolders',
    history: () => {
      const history = basis()
      return [...history, { ...leaseOf(history, 2), at: endOf(history) - 1 }]
    },
  },
  {
    title: 'a pod takes over although nothing was wrong',
    rule: 'Unprovoked',
    history: () =>
      basis().map(entry => (entry.type === 'fault' ? { ...entry, slots: [], outageMs: 10_000 } : entry)),
  },
]

const memory: readonly Forgery[] = [
  {
    title: 'a successor lacks additions that were old enough to be saved',
    rule: 'LostBeyondAge',
    history: () => older(basis(), 4_000),
  },
  {
    title: 'a successor begins with the memory of the birth',
    rule: 'LostBeyondAge',
    history: () => {
      const history = basis()
      const base = at(answersOf(history, 1), 0).answer.count
      const first = at(answersOf(history, 2), 0).answer.count
      return history.map(entry =>
        isAnswered(entry) &&
        entry.slot === 0 &&
        entry.answer.count >= first &&
        entry.answer.pod !== podOf(0, 1)
          ? { ...entry, answer: { ...entry.answer, count: entry.answer.count - first + base } }
          : entry,
      )
    },
  },
  {
    title: 'additions that the second primary lacked are in the memory of the third',
    rule: 'CameBack',
    history: () => {
      const history = basis()
      const second = at(answersOf(history, 2), 0).answer.count
      const lost = at(
        answersOf(history, 1).filter(({ answer }) => answer.count >= second),
        -1,
      )
      const third = at(answersOf(history, 3), 0)
      return swap(history, third, { ...third, answer: { ...third.answer, after: lost.word } })
    },
  },
  {
    title: 'a successor continues from more than was ever counted',
    rule: 'CameBack',
    history: () => {
      const history = basis()
      return history.map(entry =>
        isAnswered(entry) && entry.slot === 0 && entry.answer.pod === podOf(0, 2)
          ? { ...entry, answer: { ...entry.answer, count: entry.answer.count + 5_000 } }
          : entry,
      )
    },
  },
  {
    title: 'one number is given to two clients',
    rule: 'CameBack',
    history: () => {
      const history = basis()
      const call = at(answersOf(history, 1), 20)
      return answeredAt(history, call.end, call.answer, { word: 'twin' })
    },
  },
  {
    title: 'a primary counts backwards',
    rule: 'CameBack',
    history: () => {
      const history = basis()
      const [early, late] = [at(answersOf(history, 1), 10), at(answersOf(history, 1), 30)]
      return swap(swap(history, early, { ...early, answer: late.answer }), late, {
        ...late,
        answer: early.answer,
      })
    },
  },
  {
    title: 'an addition follows one that it cannot have followed',
    rule: 'CameBack',
    history: () => {
      const history = basis()
      const [early, late] = [at(answersOf(history, 1), 10), at(answersOf(history, 1), 30)]
      return swap(history, late, { ...late, answer: { ...late.answer, after: early.word } })
    },
  },
  {
    title: 'an empty app answers after the kill',
    rule: 'EmptyAnswer',
    history: () => {
      const history = basis()
      const call = at(answersOf(history, 1), -1)
      return answeredAt(history, call.end, { ...call.answer, count: 1, startedAt: 1_700_000_009_999 })
    },
  },
  {
    title: 'an app with a new life continues an old count',
    rule: 'EmptyAnswer',
    history: () => {
      const history = basis()
      const call = at(answersOf(history, 2), 3)
      return swap(history, call, { ...call, answer: { ...call.answer, startedAt: 1_700_000_009_999 } })
    },
  },
  {
    title: 'a client of one slot reads the memory of another',
    rule: 'WrongSlot',
    history: () => {
      const history = basis()
      const call = at(answersOf(history, 2), 3)
      return swap(history, call, {
        ...call,
        answer: { ...call.answer, count: call.answer.count + stride, startedAt: 1_700_000_000_001 },
      })
    },
  },
]

const service: readonly Forgery[] = [
  {
    title: 'a backup answers that no Lease has named',
    rule: 'BackupServed',
    history: () => {
      const history = basis()
      const call = at(answersOf(history, 2), 3)
      return swap(history, call, { ...call, answer: { ...call.answer, pod: 'pod-spare' } })
    },
  },
  {
    title: 'no answer for longer than the model allows',
    rule: 'Unserved',
    history: () => {
      const history = basis()
      const first = at(answersOf(history, 2), 0).end
      return history.map(entry =>
        isAnswered(entry) && entry.slot === 0 && entry.end >= first && entry.end < first + 4_000
          ? { ...entry, answer: undefined, error: 'ECONNREFUSED' }
          : entry,
      )
    },
  },
  {
    title: 'the slot never answers again',
    rule: 'Unserved',
    history: () =>
      basis().map(entry =>
        isAnswered(entry) && entry.slot === 0 && entry.answer.pod === podOf(0, 3)
          ? { ...entry, answer: undefined, error: 'ETIMEDOUT' }
          : entry,
      ),
  },
  {
    title: 'a call waits although the slot is served',
    rule: 'Hung',
    history: () => {
      const history = basis()
      const end = endOf(history)
      return [
        ...history,
        {
          ...{ type: 'call', client: 'fresh', slot: 0, word: 'hung', start: end - 1_500 },
          ...{ end: end + 4_000, error: 'timeout' },
        },
      ]
    },
  },
  {
    title: 'full protection does not return',
    rule: 'NotProtected',
    history: () =>
      basis().map(entry =>
        entry.type === 'protection' ? { ...entry, isFull: false, says: 'slot 0: Cold' } : entry,
      ),
  },
  {
    title: 'a pod restarts that no fault has hit',
    rule: 'Restarted',
    history: () => [...basis(), { type: 'restart', at: 3_000, pod: podOf(1, 3), count: 1 }],
  },
  {
    title: 'no client has asked',
    rule: 'NoTraffic',
    history: () => basis().filter(entry => !isCall(entry) || entry.slot !== 1),
  },
]

export const forgeries: readonly Forgery[] = [...twice, ...memory, ...service, ...fences, ...moves]
