/** Kinds of objects that the operator does not know yet: their caches have never been complete. */
import type { BackupPodSetStatus } from '../api/backuppodset.ts'
import { conditionTypes, reasons } from '../api/reasons.ts'
import { type Condition, setCondition } from '../kube/conditions.ts'

export interface Missing {
  /** Plural as displayed: `Nodes`. */
  readonly resource: string
  /** Message of the last failure; undefined: no answer yet. */
  readonly why: string | undefined
}

/**
 * In ms. Caches are incomplete at every start of the operator; if that lasts longer than this, it does not end by
 * itself.
 */
export const missingMs = 10_000

export const missingMessage = (missing: readonly Missing[]): string =>
  `the operator does not know all ${missing.map(({ resource }) => resource).join(', ')} yet, and until then acts on no set with memory: ${missing
    .map(({ resource, why }) => `${resource}: ${why ?? 'no complete answer'}`)
    .join(
      '; ',
    )}. Let the operator list and watch them (\`kubectl apply -k deploy/\`), install all CRDs, and look for \`watch failed\` in its log`

/** Returns the status of a set with memory in this time; the counts of its pods stay as they were. */
export function statusOfMissing(
  generation: number,
  previous: BackupPodSetStatus | undefined,
  missing: readonly Missing[],
  now: number,
): BackupPodSetStatus {
  const verdicts = [
    [conditionTypes.degraded, 'True'],
    [conditionTypes.checkpointReady, 'False'],
  ] as const
  const message = missingMessage(missing)
  return {
    ...previous,
    conditions: verdicts.reduce<readonly Condition[]>(
      (all, [type, status]) =>
        setCondition(all, {
          ...{ type, status, message, now },
          reason: reasons.cacheIncomplete,
          observedGeneration: generation,
        }),
      previous?.conditions ?? [],
    ),
  }
}
