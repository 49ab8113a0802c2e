import type { Call } from '../history.ts'

/** Each rule with the promise that it checks. */
export const rules = {
  OldEpoch: 'once the pod of a newer epoch has answered, no pod of an older one answers a later call',
  LostByMove: 'a slot that was handed over has every acknowledged addition',
  LostBeyondAge:
    'a successor has every acknowledged addition that is older than the stated age of the copies',
  CameBack: 'additions that a successor did not have never come back, and no number is given twice',
  EmptyAnswer: 'no app that began a new life answers while the memory of the slot is kept',
  WrongSlot: 'no client of one slot is answered from the memory of another',
  BackupServed: 'no pod answers that no Lease of its slot has named',
  Unserved: 'a slot is without an answer no longer than the failure model allows for the fault',
  Hung: 'no call that begins after the takeover waits for more than a second',
  NotProtected: 'full protection returns after the faults',
  TwoHolders: 'an epoch of a slot has one holder, and epochs only grow',
  Fenced: 'no primary is fenced for longer than the faults explain',
  Abandoned: 'after a pause, the process of the primary runs, and that of a former primary is gone',
  Restarted: 'no container of a pod restarts that no fault has hit',
  Unprovoked: 'no slot changes hands that no fault has hit',
  FalseVerdict:
    'the Leases confirm the end that a Migration tells, and a Migration that is deleted before the swap moves no slot',
  MoveUnfinished: 'every Migration ends',
  NoTraffic: 'every slot was asked and answered before, during and after the faults',
} as const

export type Rule = keyof typeof rules

export interface Violation {
  readonly rule: Rule
  readonly slot?: number
  readonly says: string
}

/** Names a call in a message, in seconds since the start of the history. */
export const nameOf = (call: Call, begin: number): string =>
  `${call.client} ${call.word} (${seconds(call.start - begin)} to ${seconds(call.end - begin)}, ` +
  `${call.answer === undefined ? (call.error ?? 'no answer') : `${call.answer.count} from ${call.answer.pod}`})`

export const seconds = (ms: number): string => `${(ms / 1000).toFixed(3)} s`
