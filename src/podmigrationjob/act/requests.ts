/** The requests for evictions that this process has sent, by uid of the job. */
import type { Clock } from '../../kube/clock.ts'
import { settlesMs } from '../decide/arbitrate.ts'
import type { EvictionRequest } from '../decide/view.ts'

export interface Requests {
  /** Ms since the last request of the job; infinite without one. */
  sinceMs(uid: string): number
  note(uid: string, request: EvictionRequest): void
  /** A request without an answer has been executed by now, or never is: the caches show which. */
  of(uid: string): EvictionRequest
  /** Forgets all other jobs. */
  keep(uids: ReadonlySet<string>): void
}

export function createRequests(clock: Pick<Clock, 'monotonic'>): Requests {
  const known = new Map<string, { readonly at: number; readonly request: EvictionRequest }>()
  const sinceMs = (uid: string) => clock.monotonic() - (known.get(uid)?.at ?? Number.NEGATIVE_INFINITY)
  return {
    sinceMs,
    note(uid, request) {
      const at = request === 'unanswered' ? clock.monotonic() : (known.get(uid)?.at ?? clock.monotonic())
      known.set(uid, { at, request })
    },
    of(uid) {
      const request = known.get(uid)?.request ?? 'none'
      return request === 'unanswered' && sinceMs(uid) >= settlesMs ? 'none' : request
    },
    keep(uids) {
      for (const uid of known.keys()) if (!uids.has(uid)) known.delete(uid)
    },
  }
}
