/** Follows memory that is still in transit into this node's pods while their apps already run. */

import { isAgentError } from '../../api/agent-errors.ts'
import type { GenerationStore } from '../../checkpoint/store.ts'
import { unlessAborted } from '../../kube/abort.ts'
import type { Clock } from '../../kube/clock.ts'
import type { Log } from '../../kube/log.ts'
import type { Clone, MemoryDriver } from '../criu/memory-driver.ts'
import { hasLostPages } from '../criu/pages.ts'
import type { AgentMetrics } from '../report/metrics.ts'

export interface LazyPages {
  /** Notes the clone in a pod; undefined: none. A repeated clone with the same pages changes nothing. */
  note(podUid: string, clone: Clone | undefined): void
  isComing(podUid: string): boolean
  /** Resolves when no pages are in transit, or the clone that they were for is gone. */
  whole(podUid: string, signal: AbortSignal): Promise<void>
  /** Whether the app was ended because its pages did not arrive. Call it when the app has ended. */
  wasLost(podUid: string): boolean
}

export interface LazyPagesOptions {
  readonly driver: Pick<MemoryDriver, 'settle'>
  readonly store: Pick<GenerationStore, 'retain'>
  readonly metrics: Pick<AgentMetrics, 'arrived'>
  /** Called when an app was ended because the missing pages of this container will not arrive. */
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

/** Each clone is followed until its pages have arrived or it is gone, also a clone of an earlier agent. */
export function createLazyPages(options: LazyPagesOptions): LazyPages {
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
          log.info({ pod: podUid, generation: clone.generation, seconds }, 'all memory is loaded')
          return 'here'
        } catch (error) {
          if (signal.aborted || isAgentError(error, 'CloneLost')) return 'gone'
          log.error({ err: error, pod: podUid }, 'cannot load the rest of the memory')
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

  /**
   * The pages' directory has hard links to the store's files. Retaining the generation keeps the store's byte count
   * right.
   */
  const retain = ({ slot, generation, epoch }: Clone): (() => void) => {
    try {
      return options.store.retain(slot, generation, epoch)
    } catch {
      // An earlier agent removed the generation.
      return () => undefined
    }
  }

  return {
    note(podUid, clone) {
      const old = entries.get(podUid)
      if (clone?.pages !== undefined && old?.clone.pages?.directory === clone.pages.directory) return
      old?.end.abort(new Error('another clone replaced it'))
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
