import type { SlotReport } from '../../api/node-report.ts'
import { isEqual } from '../../kube/equal.ts'
import type { ReportContent } from './content.ts'

/** Whether other programs act on the difference: usable memory, the first generation, the readiness of the node. */
export function isUrgent(old: ReportContent, next: ReportContent): boolean {
  return !isEqual(actedOn(old), actedOn(next))
}

const actedOn = ({
  ready,
  retired,
  checks,
  address,
  fingerprint,
  heartbeats,
  diskKey,
  slots,
}: ReportContent) => ({
  ready,
  retired,
  address,
  fingerprint,
  heartbeats,
  diskKey,
  checks: checks.map(({ name, ok }) => ({ name, ok })),
  slots: slots?.map(
    ({
      namespace,
      name,
      incarnation,
      role,
      generation,
      usable,
      understudyUid,
      answeredRequest,
      final,
      successorGeneration,
      standsForHandover,
      handoverPaused,
      acknowledged,
      fenced,
      ended,
      silentTerm,
      suspectTerm,
      grant,
      reason,
    }: SlotReport) => ({
      ...{ namespace, name, incarnation, role, usable, understudyUid, answeredRequest },
      ...{ final, standsForHandover, handoverPaused, reason, acknowledged, fenced, ended, grant },
      ...{ silentTerm, suspectTerm, successorGeneration },
      any: generation > 0,
      // A primary is stopped until its successor has this one.
      last: final ? generation : undefined,
    }),
  ),
})
