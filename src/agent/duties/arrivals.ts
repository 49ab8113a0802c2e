/** Memory that is still on its way into this node's pods, which run already. */
import type { GenerationStore } from '../../checkpoint/store.ts'
import { unlessAborted } from '../../kube/abort.ts'
import type { Clock } from '../../kube/clock.ts'
import type { Log } from '../../kube/log.ts'
import type { Clone, MemoryDriver } from '../driver/memory-driver.ts'
import { hasLostPages } from '../driver/pages.ts'
import { isAgentError } from '../errors.ts'
import type { AgentMetrics } from '../metrics.ts'

export interface Arrivals {
  /** What lies or runs in a pod now; undefined: nothing any more. The same again is nothing new. */
  note(podUid: string, clone: Clone | undefined): void
  isComing(podUid: string): boolean
  /** Resolves when nothing is to come any more, or what it was for is gone. */
  whole(podUid: string, signal: AbortSignal): Promise<void>
  /** Whether what ran there was ended because its memory did not come; to be asked when it ended. */
  wasLost(podUid: string): boolean
}

export interface ArrivalsOptions {
  readonly driver: Pick<MemoryDriver, 'settle'>
  readonly store: Pick<GenerationStore, 'retain'>
  readonly metrics: Pick<AgentMetrics, 'arrived'>
  /** Its app was ended: what was still to come of this container will not come. */
  readonly onLost: (podUid: string, container: string, message: string) => void
  readonly clock: Clock
  readonly log: Log
}

interface Entry {
  readonly clone: Clone
  readonly end: AbortController
  readonly over: Promise<void>
  isComing: boolean
  wasLost: boolean
}

const againMs = 1_000

/** What is followed is followed until it has arrived or is gone, also what an earlier agent has begun. */
export function createArrivals(options: ArrivalsOptions): Arrivals {
  const { driver, clock, log } = options
  const entries = new Map<string, Entry>()

  const follow = async (
    podUid: string,
    clone: Clone,
    signal: AbortSignal,
  ): Promise<'here' | 'gone' | 'lost'> => {
    const release = retain(clone)
    const startedAt = clock.monotonic()
    try {
      for (;;) {
        try {
          await driver.settle(clone, signal)
          const seconds = (clock.monotonic() - startedAt) / 1000
          options.metrics.arrived(seconds)
          log.info({ pod: podUid, generation: clone.generation, seconds }, 'all of its memory is there')
          return 'here'
        } catch (error) {
          if (signal.aborted || isAgentError(error, 'CloneLost')) return 'gone'
          log.error({ err: error, pod: podUid }, 'memory that was still to come')
          if (isAgentError(error, 'PagesLost')) {
            const [server] = clone.pages?.servers ?? []
            options.onLost(podUid, server?.container ?? '', error.message)
            return 'lost'
          }
          await clock.sleep(againMs, signal)
        }
      }
    } catch (error) {
      if (signal.aborted) return 'gone'
      throw error
    } finally {
      release()
    }
  }

  /** What is read is linked beside the store; that it counts as in use keeps the sum of it right. */
  const retain = ({ slot, generation, epoch }: Clone): (() => void) => {
    try {
      return options.store.retain(slot, generation, epoch)
    } catch {
      // Removed while an earlier agent was here.
      return () => undefined
    }
  }

  return {
    note(podUid, clone) {
      const old = entries.get(podUid)
      if (clone?.pages !== undefined && old?.clone.pages?.directory === clone.pages.directory) return
      old?.end.abort(new Error('something else lies there'))
      entries.delete(podUid)
      if (clone?.pages === undefined) return
      const end = new AbortController()
      const entry: Entry = {
        clone,
        end,
        isComing: true,
        wasLost: false,
        over: follow(podUid, clone, end.signal).then(how => {
          entry.isComing = false
          entry.wasLost = how === 'lost'
          if (how !== 'lost' && entries.get(podUid) === entry) entries.delete(podUid)
        }),
      }
      entries.set(podUid, entry)
    },
    isComing: podUid => entries.get(podUid)?.isComing === true,
    async whole(podUid, signal) {
      const over = entries.get(podUid)?.over
      if (over !== undefined) await unlessAborted(over, signal)
    },
    wasLost(podUid) {
      const entry = entries.get(podUid)
      return entry !== undefined && (entry.wasLost || (entry.isComing && hasLostPages(entry.clone)))
    },
  }
}
