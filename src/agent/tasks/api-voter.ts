import { isAgentError } from '../../api/agent-errors.ts'
import type { Clock } from '../../kube/clock.ts'
import { isKubeError } from '../../kube/errors.ts'
import type { Log } from '../../kube/log.ts'
import type { FenceView } from '../observe/snapshot.ts'
import type { ApiAnswer } from '../report/api-answer.ts'
import type { SentinelClient } from '../sentinel/client.ts'

/** Brings answers of the API server to the sentinel, while primaries of this node have too few answers of nodes. */
export interface ApiVoter {
  /** A primary with this time-out wants an answer. */
  alone(timeoutMs: number): void
  /** The API server has taken a write of the report. */
  answered(answer: ApiAnswer): void
}

export interface ApiVoterOptions {
  /** Asks the API server. @throws KubeError. */
  readonly ask: (timeoutMs: number, signal: AbortSignal) => Promise<ApiAnswer | undefined>
  readonly sentinel: Pick<SentinelClient, 'answered'>
  readonly guarded: FenceView['guarded']
  readonly clock: Pick<Clock, 'monotonic'>
  readonly log: Log
  readonly signal: AbortSignal
}

/** An answer counts for two thirds of the time-out. One that takes longer than this leaves time for another try. */
const share = 1 / 3
/** For so long after the latest request of a primary each write of the report counts as well, ms. */
const recentMs = 10_000

export function createApiVoter({ ask, sentinel, guarded, clock, log, signal }: ApiVoterOptions): ApiVoter {
  let isAsking = false
  let aloneAt = Number.NEGATIVE_INFINITY

  const tell = async ({ run, sentNs }: ApiAnswer): Promise<void> => {
    for (const [name, { term }] of [...guarded])
      await sentinel.answered({ name, term, run, sentNs }, signal).catch((error: unknown) => {
        // The pod or its term has ended since.
        if (!isAgentError(error, 'ProcessGone', 'SentinelRefused')) throw error
      })
  }
  const orLog = (error: unknown) => {
    if (signal.aborted) return
    if (!isKubeError(error) && !isAgentError(error)) throw error
    log.warn({ err: error }, 'cannot bring an answer of the API server to the sentinel')
  }
  return {
    alone(timeoutMs) {
      aloneAt = clock.monotonic()
      // The sentinel asks again while it needs an answer.
      if (isAsking) return
      isAsking = true
      void ask(timeoutMs * share, signal)
        .then(answer => answer && tell(answer))
        .catch(orLog)
        .finally(() => {
          isAsking = false
        })
    },
    answered(answer) {
      if (clock.monotonic() - aloneAt < recentMs) void tell(answer).catch(orLog)
    },
  }
}
