/**
 * The two conditions of kstatus, by which Flux, Helm and `kapp` judge objects of kinds that they do not know. An object whose
 * `Stalled` is True has failed: these tools stop to wait at once, and not at their timeout.
 */
import { conditionTypes, reasons } from '../api/reasons.ts'
import type { Condition } from '../kube/conditions.ts'

export type Wanted = Pick<Condition, 'type' | 'status' | 'reason' | 'message'>

/** Reasons of `Progressing` that only a change of the set, or of what its pods need, can end. */
const stalls: readonly string[] = [reasons.progressDeadlineExceeded, reasons.updateWouldLoseState]

/** Returns both, which are never True at the same time. */
export const kstatusOf = ({ status, reason, message }: Wanted): readonly [Wanted, Wanted] => {
  const isStalled = status === 'False' && stalls.includes(reason)
  return [
    { type: conditionTypes.reconciling, status, reason, message },
    {
      type: conditionTypes.stalled,
      status: isStalled ? 'True' : 'False',
      reason: isStalled ? reason : reasons.asExpected,
      message: isStalled ? message : '',
    },
  ]
}
