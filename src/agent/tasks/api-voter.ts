import type { Clock } from '../../kube/clock.ts'
import type { Log } from '../../kube/log.ts'
import type { FenceView } from '../observe/snapshot.ts'
import type { ApiAnswer } from '../report/api-answer.ts'
import type { SentinelClient } from '../sentinel/client.ts'

/** Brings answers of the API server to the sentinel, while primaries of this node have too few answers of nodes. */
export interface ApiVoter {
  /** A pod with this time-out wants an answer. Its term may be one that the sentinel has not acknowledged yet. */
  alone(pod: Alone, timeoutMs: number): void
  /** The API server has taken a write of the report. */
  answered(answer: ApiAnswer): void
}

/** A pod, by its uid. */
export interface Alone {
  readonly name: string
  readonly term: number
}

export interface ApiVoterOptions {
  /** Asks the API server. @throws KubeError. */
  readonly ask: (timeoutMs: number, signal: AbortSignal) => Promise<ApiAnswer | undefined>
  readonly sentinel: Pick<SentinelClient, 'answered'>
  readonly guarded: FenceView['guarded']
  /** Uids of guarded pods that are stopped for want of answers. */
  readonly fenced: FenceView['fenced']
  /** Whether the API server says that the pod still has its slot. @throws KubeError. */
  readonly isStillCalled: (uid: string, signal: AbortSignal) => Promise<boolean>
  readonly clock: Pick<Clock, 'monotonic'>
  readonly log: Log
  readonly signal: AbortSignal
}

/** An answer counts for two thirds of the time-out. One that takes longer than this leaves time for another try. */
const share = 1 / 3
/** For so long after the latest request of a pod each write of the report counts as well, ms. */
const recentMs = 10_000

export function createApiVoter(options: ApiVoterOptions): ApiVoter {
  const { ask, sentinel, guarded, fenced, isStillCalled, clock, log, signal } = options
  let isAsking = false
  /** By pod and term: when the sentinel has asked. */
  const asked = new Map<string, Alone & { readonly at: number }>()
  /** Pods whose Lease is being read: the next answer does not wait for it. */
  const looking = new Set<string>()
  const keyOf = ({ name, term }: Alone) => `${name} ${term}`

  /** A pod may want answers in two terms: that which the sentinel has acknowledged, and the next one. */
  const tell = async (answer: ApiAnswer): Promise<void> => {
    const terms = new Map<string, Set<number>>()
    const add = (name: string, term: number) => terms.set(name, (terms.get(name) ?? new Set()).add(term))
    for (const { name, term } of asked.values()) add(name, term)
    for (const [name, { term }] of guarded) add(name, term)
    await Promise.all([...terms].map(([name, its]) => tellOf(name, its, answer)))
  }
  /**
   * The answer resumes a stopped pod. Another pod may have got its slot while this node was cut off, and without a statement of the API
   * server: by a handover, of which this agent has not heard yet.
   */
  const tellOf = async (
    name: string,
    terms: ReadonlySet<number>,
    { run, sentNs }: ApiAnswer,
  ): Promise<void> => {
    if (fenced.has(name) && !(await looks(name))) return
    await Promise.all([...terms].map(term => sentinel.answered({ name, term, run, sentNs }, signal)))
  }
  const looks = async (name: string): Promise<boolean> => {
    if (looking.has(name)) return false
    looking.add(name)
    try {
      return await isStillCalled(name, signal)
    } finally {
      looking.delete(name)
    }
  }
  const orLog = (error: unknown) => {
    if (!signal.aborted) log.warn({ err: error }, 'cannot bring an answer of the API server to the sentinel')
  }
  return {
    alone(pod, timeoutMs) {
      asked.set(keyOf(pod), { ...pod, at: clock.monotonic() })
      // The sentinel asks again while it needs an answer.
      if (isAsking) return
      isAsking = true
      void ask(timeoutMs * share, signal)
        .finally(() => {
          isAsking = false
        })
        .then(answer => answer && tell(answer))
        .catch(orLog)
    },
    answered(answer) {
      for (const [key, { at }] of asked) if (clock.monotonic() - at >= recentMs) asked.delete(key)
      if (asked.size > 0) void tell(answer).catch(orLog)
    },
  }
}
