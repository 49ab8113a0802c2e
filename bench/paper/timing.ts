import type { AuditEvent } from '../observe/audit.ts'
import type { PassLine } from '../observe/operator-log.ts'
import type { PodWrite } from '../observe/writes.ts'

export interface Timing {
  /** Unix ms of the beginning of the first pass after the request. */
  readonly passBegan: number
  /** Unix ms at which the last pod write was seen in the watch. */
  readonly lastWrite: number
  /** Unix ms at which the API server had answered the last pod write; only with an audit log. */
  readonly lastAnswer: number | undefined
  readonly podWrites: number
}

export interface Evidence {
  /** Unix ms just before the request. */
  readonly requested: number
  readonly passes: readonly PassLine[]
  readonly writes: readonly PodWrite[]
  /** The operator's own requests; undefined without an audit log. */
  readonly audit: readonly AuditEvent[] | undefined
}

/**
 * Controller time, reading (a): from the first pass that began after the request to the last pod write (creation, change
 * of a label, deletion). @throws Error when the log or the watch does not show it.
 */
export function timingOf({ requested, passes, writes, audit }: Evidence): Timing {
  // The log has whole ms, rounded down: a pass in the same ms as the request cannot be of it, the request takes longer.
  const pass = passes.find(({ at }) => at >= Math.floor(requested))
  if (pass === undefined) throw new Error('the log shows no pass after the request')
  const own = writes.filter(({ at }) => at >= pass.at)
  const last = own.at(-1)
  if (last === undefined) throw new Error('no pod was written after the request')
  const answered =
    audit &&
    answersTo(
      own,
      audit.filter(({ answered: at }) => at >= pass.at),
    )
  if (answered?.length === 0) throw new Error('the audit log shows no pod write of the operator')
  return {
    passBegan: pass.at,
    lastWrite: last.at,
    lastAnswer: answered === undefined ? undefined : Math.max(...answered),
    podWrites: own.length,
  }
}

/**
 * When the writes that the watch shows were answered. What a request changed is not in the log: a pod's first ones are
 * taken, as a note in an annotation comes after the label.
 */
function answersTo(writes: readonly PodWrite[], audit: readonly AuditEvent[]): number[] {
  const left = new Map<string | undefined, number>()
  for (const { pod } of writes) left.set(pod.metadata.name, (left.get(pod.metadata.name) ?? 0) + 1)
  const inOrder = audit.filter(isPodWrite).sort((a, b) => a.received - b.received)
  return inOrder.flatMap(({ name, answered }) => {
    const count = left.get(name) ?? 0
    left.set(name, count - 1)
    return count > 0 ? [answered] : []
  })
}

const isPodWrite = ({ resource, verb, code }: AuditEvent): boolean =>
  resource === 'pods' && ['create', 'patch', 'update', 'delete'].includes(verb) && code < 300
