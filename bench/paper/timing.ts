import type { AuditEvent } from '../observe/audit.ts'
import type { PassLine } from '../observe/operator-log.ts'
import type { PodWrite } from '../observe/writes.ts'

export interface Timing {
  /** Unix ms of the start of the first pass after the request. */
  readonly passBegan: number
  /** Unix ms at which the last pod write was seen in the watch. */
  readonly lastWrite: number
  /** Only with an audit log. */
  readonly server: ServerTiming | undefined
  readonly podWrites: number
}

/** The API server's part of the time. */
export interface ServerTiming {
  /** Unix ms at which the last pod write was answered. */
  readonly lastAnswer: number
  /** Ms in which at least one pod write was in progress: the total if everything else took no time. */
  readonly busyMs: number
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
 * Controller time, reading (a): from the first pass that began after the request to the last pod write (creation,
 * change of a label, deletion).
 * @throws Error if the log or the watch does not show it
 */
export function timingOf({ requested, passes, writes, audit }: Evidence): Timing {
  // The log has whole ms, rounded down, so the request's time is rounded down too. The request takes longer than that:
  // it cannot have caused a pass in the same ms.
  const pass = passes.find(({ at }) => at >= Math.floor(requested))
  if (pass === undefined) throw new Error('the log shows no pass after the request')
  const own = writes.filter(({ at }) => at >= pass.at)
  const last = own.at(-1)
  if (last === undefined) throw new Error('no pod was written after the request')
  const requests =
    audit &&
    requestsOf(
      own,
      audit.filter(({ answered: at }) => at >= pass.at),
    )
  if (requests?.length === 0) throw new Error('the audit log shows no pod write of the operator')
  return {
    passBegan: pass.at,
    lastWrite: last.at,
    server: requests && {
      lastAnswer: Math.max(...requests.map(({ answered }) => answered)),
      busyMs: lengthOfUnion(requests),
    },
    podWrites: own.length,
  }
}

/**
 * Returns the requests whose effects the watch shows, in the order received. The log does not say what a request
 * changed, so the first ones of a pod count: an annotation is written after the label.
 */
function requestsOf(writes: readonly PodWrite[], audit: readonly AuditEvent[]): AuditEvent[] {
  const left = new Map<string | undefined, number>()
  for (const { pod } of writes) left.set(pod.metadata.name, (left.get(pod.metadata.name) ?? 0) + 1)
  const inOrder = audit.filter(isPodWrite).sort((a, b) => a.received - b.received)
  return inOrder.filter(({ name }) => {
    const count = left.get(name) ?? 0
    left.set(name, count - 1)
    return count > 0
  })
}

/** @param inOrder sorted by start */
function lengthOfUnion(inOrder: readonly Pick<AuditEvent, 'received' | 'answered'>[]): number {
  let length = 0
  let until = Number.NEGATIVE_INFINITY
  for (const { received, answered } of inOrder) {
    length += Math.max(0, answered - Math.max(received, until))
    until = Math.max(until, answered)
  }
  return length
}

const isPodWrite = ({ resource, verb, code }: AuditEvent): boolean =>
  resource === 'pods' && ['create', 'patch', 'update', 'delete'].includes(verb) && code < 300
