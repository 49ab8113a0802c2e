/**
 * A failover consists of some writes to the API server, one after the other, and clients wait for each of them. In the same
 * moment the report and the events of its nodes change. These writes give way for a moment, because one server takes them all.
 */
import { setImmediate } from 'node:timers/promises'
import type { Clock } from '../../kube/clock.ts'

export interface Precedence {
  /** Others give way until this has settled. Returns it. */
  during<T>(work: Promise<T>): Promise<T>
  /** Resolves when no such work is under way, at the latest after `mostMs`. */
  giveWay(): Promise<void>
}

/** Readers of a report may wait for it, too. */
const mostMs = 150

export function createPrecedence(clock: Pick<Clock, 'sleep'>): Precedence {
  let underWay = 0
  let over = Promise.withResolvers<void>()
  const end = () => {
    underWay -= 1
    if (underWay > 0) return
    over.resolve()
    over = Promise.withResolvers()
  }
  return {
    during(work) {
      underWay += 1
      work.then(end, end)
      return work
    },
    async giveWay() {
      // The pass that has changed the report has also begun the promotion, whose first steps need some microtasks.
      await setImmediate()
      if (underWay === 0) return
      const ended = new AbortController()
      const late = clock.sleep(mostMs, ended.signal).catch(() => undefined)
      await Promise.race([over.promise, late])
      ended.abort('over')
    },
  }
}
