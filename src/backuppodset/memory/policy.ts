import { limits } from '../../api/backuppodset.ts'
import type { ParsedSet } from '../../api/parse.ts'
import { formatPolicy, parsePolicy, type SlotPolicy } from '../../api/slot-policy.ts'

/**
 * Returns what agents have to know of this set; undefined if it keeps no memory. The readable part of an invalid spec may
 * have values out of bounds, which agents would not read.
 */
export function policyOf(
  { memory, liveness, paused }: Pick<ParsedSet, 'memory' | 'liveness' | 'paused'>,
  restoreHash: string | undefined,
): SlotPolicy | undefined {
  if (memory === undefined || restoreHash === undefined) return undefined
  const { mode, intervalMs, maxFreezePercent, containers, keep, disk, volumeBytes } = memory
  const { min, max } = limits.interval
  return parsePolicy(
    formatPolicy({
      ...{ mode, maxFreezePercent, containers, keep, disk, volumeBytes },
      intervalMs: Math.min(Math.max(Math.round(intervalMs), min), max),
      ...(liveness && { liveness }),
      ...{ paused, restoreHash },
    }),
  )
}
