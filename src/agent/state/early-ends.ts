/** Ends of apps that were resumed and had not answered yet: which memory a pod does not resume for now. */
import { type BackoffPolicy, backoffMs } from '../../kube/backoff.ts'
import type { Clock } from '../../kube/clock.ts'
import type { Clone } from '../criu/memory-driver.ts'

export type Generation = Pick<Clone, 'epoch' | 'generation'>

export interface EarlyEnds {
  /** Notes that the app of this generation has ended in these containers of a pod; counts once for them. */
  note(uid: string, containers: string, generation: Generation): void
  /** Returns until when (wall clock, ms, for display) the pod does not resume the generation; undefined: it may now. */
  barredUntil(uid: string, generation: Generation): number | undefined
  /** Forgets all pods but these. */
  keep(live: ReadonlySet<string>): void
}

/**
 * A generation is barred from a pod if its app ends so often there. A single end may have another cause, such as a request
 * that the app does not survive.
 */
const mostResumes = 2

/**
 * So may many ends, such as a database that is away for minutes: the memory is intact, and nothing here can tell when the
 * cause has passed. So each bar lapses, and the generation is resumed once more.
 */
const pauses: BackoffPolicy = { initialMs: 30_000, maxMs: 600_000 }

interface Ends {
  /** The containers in which it ended last. */
  readonly containers: string
  readonly times: number
  /** The time of the last end, monotonic, ms; `wall` is the same by the wall clock. */
  readonly at: number
  readonly wall: number
}

export function createEarlyEnds(clock: Pick<Clock, 'now' | 'monotonic'>): EarlyEnds {
  /** By uid, then by generation. */
  const known = new Map<string, Map<string, Ends>>()
  return {
    note(uid, containers, generation) {
      const ofPod = known.get(uid) ?? new Map<string, Ends>()
      const before = ofPod.get(keyOf(generation))
      if (before?.containers === containers) return
      const times = (before?.times ?? 0) + 1
      known.set(
        uid,
        ofPod.set(keyOf(generation), { containers, times, at: clock.monotonic(), wall: clock.now() }),
      )
    },
    barredUntil(uid, generation) {
      const ends = known.get(uid)?.get(keyOf(generation))
      if (ends === undefined || ends.times < mostResumes) return undefined
      const pauseMs = backoffMs(ends.times - mostResumes, pauses)
      return clock.monotonic() < ends.at + pauseMs ? ends.wall + pauseMs : undefined
    },
    keep(live) {
      for (const uid of [...known.keys()]) if (!live.has(uid)) known.delete(uid)
    },
  }
}

const keyOf = ({ epoch, generation }: Generation): string => `${epoch}/${generation}`
