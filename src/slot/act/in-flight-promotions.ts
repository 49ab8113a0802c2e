import type { Role } from '../decide/actions.ts'
import type { Candidate } from '../decide/snapshot.ts'
import type { Wakening } from '../observe/candidate.ts'
import type { Outcome } from './outcome.ts'

/**
 * The wake-ups in progress in this process. A healthy gate answers within milliseconds, and its pass waits for that and
 * for the following write. A gate that does not answer is tried here for up to `wakeupTimeout`, so that it delays only
 * its own pod.
 */
export interface InFlightPromotions {
  of(uid: string): Wakening | undefined
  /**
   * Runs `conversion` for the pod; `finished` is called afterwards, when `of` no longer knows the pod.
   * @param conversion calls `answered` when its gate has answered: only ordinary writes remain.
   * @returns its outcome, or undefined if `patience` ended before the gate answered.
   */
  start<Action>(
    pod: Candidate,
    to: 'primary' | 'hotbackup',
    role: Role | undefined,
    conversion: (answered: () => void) => Promise<Outcome<Action>>,
    finished: (outcome: Outcome<Action>) => void,
  ): Promise<Outcome<Action> | undefined>
  /** Resolves when no wake-up is in progress. */
  settled(): Promise<void>
}

export function createInFlightPromotions(patience: () => Promise<void>): InFlightPromotions {
  const underWay = new Map<string, { wakening: Wakening; done: Promise<unknown> }>()
  return {
    of: uid => underWay.get(uid)?.wakening,
    async start(pod, to, role, conversion, finished) {
      let heard = false
      const done = conversion(() => {
        heard = true
      })
      underWay.set(pod.uid, {
        wakening: { to, slot: role?.slot ?? pod.slot, epoch: role?.epoch ?? pod.epoch },
        done,
      })
      let waited = true
      const ended = done.then(outcome => {
        underWay.delete(pod.uid)
        if (!waited) finished(outcome)
        return outcome
      })
      return Promise.race([
        ended,
        patience().then(() => {
          if (heard) return ended
          waited = false
          return undefined
        }),
      ])
    },
    settled: async () => {
      await Promise.allSettled([...underWay.values()].map(({ done }) => done))
    },
  }
}
