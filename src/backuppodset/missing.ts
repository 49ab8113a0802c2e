/** Kinds of objects that the operator does not know yet: a cache that was never complete. */
import type { BackupPodSetStatus, Condition } from '../api/backuppodset.ts'
import { conditionTypes, reasons } from '../api/reasons.ts'
import { setCondition } from './condition.ts'

export interface Missing {
  /** Plural, as people know it: `Nodes`. */
  readonly resource: string
  /** In the words of the last failure; undefined: there is no answer yet. */
  readonly why: string | undefined
}

/** Every operator begins so; what lasts for longer, ms, does not end by itself. */
export const missingMs = 10_000

export const missingMessage = (missing: readonly Missing[]): string =>
  `the operator does not know all ${missing.map(({ resource }) => resource).join(', ')} yet, and decides nothing for sets with memory until it does: ${missing
    .map(({ resource, why }) => `${resource}: ${why ?? 'no answer that is complete'}`)
    .join(
      '; ',
    )}. Let the operator list and watch them (\`kubectl apply -k deploy/\`), install all kinds, and look for \`watch failed\` in its log`

/** What the status says of a set with memory meanwhile; what is known of its pods stays as it was. */
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
