import type { SlotLease } from '../../api/slot-lease.ts'
import type { Stored } from '../../checkpoint/store.ts'
import type { Told } from '../../slot/decide/age.ts'
import type { Elsewhere } from '../observe/elsewhere.ts'
import { toldOf } from '../observe/generations.ts'
import { isToldTooOld } from './lease-check.ts'
import type { TaskContext } from './task-context.ts'

/**
 * How long the report of a node may come after what its agent has said about a death, ms. A node writes its reports after the death. Without
 * the report, the promotion fails, and its next try comes later than this.
 */
const reportMs = 1_000
const lookMs = 20

/**
 * Returns what other nodes report. The Lease may ask for newer memory than anyone has reported yet, because the agent of a dead
 * primary tells of the last save with the death: then this waits for its report.
 */
export async function untilTold(
  { elsewhere, clock }: Pick<TaskContext, 'elsewhere' | 'clock'>,
  lease: SlotLease,
  newest: Pick<Stored, 'manifest'> | undefined,
  signal: AbortSignal,
): Promise<readonly Elsewhere[]> {
  const { atLeast } = lease
  const isEnough = (told: Told | undefined) =>
    atLeast === undefined || (told !== undefined && !isToldTooOld(told, atLeast, lease))
  for (const until = clock.monotonic() + reportMs; ; await clock.sleep(lookMs, signal)) {
    const others = elsewhere(lease)
    const isTold = isEnough(newest && toldOf(newest.manifest)) || isEnough(others[0])
    if (isTold || clock.monotonic() > until) return others
  }
}
