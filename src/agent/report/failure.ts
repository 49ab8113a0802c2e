import { isAgentError } from '../../api/agent-errors.ts'
import { type CheckpointErrorCode, isCheckpointError } from '../../checkpoint/errors.ts'
import { isKubeError } from '../../kube/errors.ts'

/** Advice for a person on errors of a node's budgets. */
const cures: Partial<Record<CheckpointErrorCode, string>> = {
  StoreFull:
    "raise limits.memory of the agents' DaemonSet (agents may use half of it), or lower checkpoint.keep",
  DiskFull: 'raise --disk-budget of the agents; the tmpfs still keeps memory',
  DiskLow: "free space on the node's disk; the tmpfs still keeps memory",
}

/**
 * Converts an error to the reason and the message of a report. An unexpected error gives only its name: its text may
 * hold anything.
 */
export function reasonOf(error: unknown): { readonly reason: string; readonly message: string } {
  if (isAgentError(error)) return { reason: error.code, message: `${error.message}; ${error.cure}` }
  if (isCheckpointError(error)) {
    const cure = cures[error.code]
    return { reason: error.code, message: cure === undefined ? error.message : `${error.message}; ${cure}` }
  }
  if (isKubeError(error)) return { reason: `Api${error.code}`, message: error.message }
  const name = error instanceof Error ? error.name : typeof error
  return { reason: 'Unexpected', message: `${name}; see the log of the agent` }
}

/** Errors that come with any end of a pod, and with a primary that is stopped because too few of its voters answer. */
export const isEnd = (error: unknown): boolean =>
  isAgentError(error, 'ProcessGone', 'NotRunning', 'DumpVoid', 'NotCalled', 'StillCalled', 'Fenced')
