/** The rule by which namespaces share the budgets of a node for generations: in the tmpfs, and on the disk. */
import { mostOf } from '../kube/fair-share.ts'
import { CheckpointError, type CheckpointErrorCode } from './errors.ts'

export interface SharedBudget {
  /** Bytes in all. */
  readonly budget: number
  /** Share (0 to 1) that one namespace may have of the bytes that all others leave. */
  readonly share: number
}

/** The space in use when a namespace wants more. */
export interface NamespaceUse {
  readonly namespace: string
  /** Bytes that count for the namespace. */
  readonly own: number
  /** Bytes of all other namespaces. */
  readonly others: number
}

/** Returns the bytes that the namespace may have. */
export const mostFor = ({ others }: NamespaceUse, { budget, share }: SharedBudget): number =>
  Math.floor(mostOf(budget, others, share))

/** @throws CheckpointError with this code, if the namespace may not have so many bytes more. */
export function assertShare(
  wanted: number,
  use: NamespaceUse,
  of: SharedBudget,
  code: CheckpointErrorCode,
): void {
  const most = mostFor(use, of)
  if (use.own + wanted > most)
    throw new CheckpointError(
      code,
      `${wanted} more bytes do not fit: namespace ${use.namespace} has ${use.own} of its limit of ${most} on this node`,
    )
}
