import type { Clock } from '../kube/clock.ts'

/** Backoff before a pod that failed to get on stage is tried again; the pause doubles with each failure, ms. */
const pauses = { firstMs: 60_000, mostMs: 600_000 } as const

/** Pods that were called on stage and did not get there: others are called before them for a while. */
export interface Setbacks {
  note(podUid: string, why: string): void
  /** Returns why the pod failed when it was last tried, until its pause is over. */
  of(podUid: string): string | undefined
  /** The pod no longer exists. */
  forget(podUid: string): void
}

export function createSetbacks(clock: Pick<Clock, 'monotonic'>): Setbacks {
  const byPod = new Map<string, { readonly why: string; readonly at: number; readonly times: number }>()
  return {
    note(podUid, why) {
      const times = (byPod.get(podUid)?.times ?? 0) + 1
      byPod.set(podUid, { why, at: clock.monotonic(), times })
    },
    of(podUid) {
      const setback = byPod.get(podUid)
      if (setback === undefined) return undefined
      const pauseMs = Math.min(pauses.mostMs, pauses.firstMs * 2 ** (setback.times - 1))
      return clock.monotonic() - setback.at < pauseMs ? setback.why : undefined
    },
    forget: podUid => void byPod.delete(podUid),
  }
}
