import type { BackupPodSetStatus } from '../api/backuppodset.ts'
import { conditionTypes, reasons } from '../api/reasons.ts'
import type { SetEvent } from './action-events.ts'
import { updateOf } from './decide/update.ts'
import type { RefusedSpec } from './in-force.ts'

type Facts = Parameters<typeof updateOf>[0]

export interface UpdateWord {
  readonly reason: string
  readonly message: string
}

/** Describes pods that keep an older template; undefined if there are none, and during a rollout. */
export function waitingUpdate(facts: Facts): UpdateWord | undefined {
  const { set } = facts
  const { outdated, stranded, blocked } = updateOf(facts)
  if (outdated.length === 0) return undefined
  const have = `${outdated.length} pods have an older template`
  const slots = stranded.map(({ lease }) => lease.slot)
  const named = `${slots.slice(0, 10).join(', ')}${slots.length > 10 ? ' and others' : ''}`
  const strands = `the memory of slot ${named} does not fit the new one: images, commands, mounts or security contexts differ`
  if (blocked)
    return {
      reason: reasons.updateWouldLoseState,
      message: `${have}, and ${strands}. Set updateStrategy.allowStateLoss to true to give that memory up, or revert the template`,
    }
  if (set.updateStrategy === 'RollingUpdate') return undefined
  return {
    reason: reasons.updateOnDelete,
    message:
      stranded.length === 0
        ? `${have}; each is replaced when you delete it`
        : `${have}, and ${strands}. Until that memory is given up, successors use the older template; to give it up, set updateStrategy to RollingUpdate with allowStateLoss`,
  }
}

const wordOf = (status: BackupPodSetStatus | undefined, condition: string) =>
  status?.conditions?.find(({ type }) => type === condition)

/** Returns events for changes, one for each. */
export function updateNotices(
  previous: BackupPodSetStatus | undefined,
  status: BackupPodSetStatus,
): readonly SetEvent[] {
  return [
    ...degradedNotices(previous, status),
    ...progressNotices(previous, status),
    ...suspendNotices(previous, status),
  ]
}

/** Tells why a set cannot be suspended, and what happens to its memory while it is. */
function suspendNotices(previous: BackupPodSetStatus | undefined, status: BackupPodSetStatus): SetEvent[] {
  const now = wordOf(status, conditionTypes.suspended)
  if (now === undefined || wordOf(previous, conditionTypes.suspended)?.reason === now.reason) return []
  const expected: readonly string[] = [
    ...[reasons.saving, reasons.suspending, reasons.suspended, reasons.paused],
    ...[reasons.moving, reasons.takingOver, reasons.grantOutstanding],
  ]
  if (expected.includes(now.reason)) return []
  return [{ type: 'Warning', reason: now.reason, action: 'Suspend', note: now.message }]
}

function degradedNotices(previous: BackupPodSetStatus | undefined, status: BackupPodSetStatus): SetEvent[] {
  const now = wordOf(status, conditionTypes.degraded)
  const told: readonly string[] = [reasons.replacementsPaused, reasons.operatorBlind]
  if (now === undefined || !told.includes(now.reason)) return []
  if (wordOf(previous, conditionTypes.degraded)?.message === now.message) return []
  return [{ type: 'Warning', reason: now.reason, action: 'Promote', note: now.message }]
}

function progressNotices(previous: BackupPodSetStatus | undefined, status: BackupPodSetStatus): SetEvent[] {
  const now = wordOf(status, conditionTypes.progressing)
  if (now === undefined || wordOf(previous, conditionTypes.progressing)?.reason === now.reason) return []
  const told: readonly string[] = [reasons.updateOnDelete, reasons.updateWouldLoseState, reasons.rollWaits]
  if (!told.includes(now.reason)) return []
  const type = now.reason === reasons.updateOnDelete ? 'Normal' : 'Warning'
  return [{ type, reason: now.reason, action: 'Update', note: now.message }]
}

/** Returns one event for each refusal. */
export function refusalNotices(
  previous: BackupPodSetStatus | undefined,
  { code, message }: RefusedSpec,
): readonly SetEvent[] {
  const told = wordOf(previous, conditionTypes.degraded)
  if (told?.reason === code && told.message === message) return []
  return [{ type: 'Warning', reason: code, action: 'Validate', note: message }]
}
