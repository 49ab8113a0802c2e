import { backoffMs } from '../kube/backoff.ts'
import type { Clock } from '../kube/clock.ts'
import type { Stranded } from './snapshot.ts'

/** A hot backup is replaced after it has been stranded for so long, ms. */
const patienceMs = 15_000
/** The next pods, if they are stranded too: the scheduler may have no room for them elsewhere. */
const pauses = Object.freeze({ initialMs: 60_000, maxMs: 600_000, jitter: 0 })

/** The hot backups of one set that could be heir of no slot, one after the other. */
export interface Strandings {
  /**
   * To be called once per pass.
   * @param uids of the pods that are stranded now; undefined if every slot has an heir of its own, which ends the pauses.
   * @param isCovered true if every slot has an heir, although some slots may share one. Then one pod is replaced. The next stranded pod stays.
   * @returns the pod to replace; undefined if none is stranded.
   */
  note(uids: readonly string[] | undefined, isCovered?: boolean): Stranded | undefined
}

export function createStrandings(clock: Pick<Clock, 'monotonic'>): Strandings {
  let last: { readonly uid: string; readonly at: number | undefined; readonly times: number } | undefined
  return {
    note(uids, isCovered = false) {
      if (uids === undefined) last = undefined
      const before = last
      const uid = uids?.find(each => each === before?.uid) ?? uids?.[0]
      if (uid === undefined) {
        last = before && { ...before, at: undefined }
        return undefined
      }
      const isSame = before?.uid === uid
      const at = (isSame ? before.at : undefined) ?? clock.monotonic()
      const times = before === undefined ? 0 : before.times + (isSame ? 0 : 1)
      last = { uid, at, times }
      if (isCovered && times > 0) return undefined
      return { uid, dueAt: at + (times === 0 ? patienceMs : backoffMs(times - 1, pauses)) }
    },
  }
}
