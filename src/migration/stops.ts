import type { Clock } from '../kube/clock.ts'

/**
 * Measures for how long pods are stopped, by this process' own clock, until its first sight of the successor that serves. A stop has begun
 * as the agent says in its first report of it; agents of earlier versions say nothing, and then it begins with the first sight of the request. A sight
 * is as late as a watch is. Nothing is known of stops that another process saw begin.
 */
export interface Stops {
  /** @param stoodMs how long the pod has been stopped, by the agent; undefined: that is not known, or the pod is not stopped yet. */
  noteStopping(migration: string, isStopping: boolean, stoodMs?: number): void
  /** @returns the ms, once the successor serves; undefined: not measured, or not over. */
  noteServing(migration: string, serves: boolean): number | undefined
  /** Forgets all others. */
  keep(migrations: ReadonlySet<string>): void
}

export function createStops(clock: Pick<Clock, 'monotonic'>): Stops {
  const begun = new Map<string, { readonly at: number; readonly isTold: boolean }>()
  const ended = new Map<string, number>()
  return {
    noteStopping(migration, isStopping, stoodMs) {
      const known = begun.get(migration)
      if (!isStopping) begun.delete(migration)
      else if (stoodMs !== undefined && known?.isTold !== true)
        begun.set(migration, { at: clock.monotonic() - stoodMs, isTold: true })
      else if (known === undefined) begun.set(migration, { at: clock.monotonic(), isTold: false })
    },
    noteServing(migration, serves) {
      const { at } = begun.get(migration) ?? {}
      if (at === undefined || !serves) return undefined
      const end = ended.get(migration) ?? clock.monotonic()
      ended.set(migration, end)
      return end - at
    },
    keep(migrations) {
      for (const map of [begun, ended])
        for (const uid of map.keys()) if (!migrations.has(uid)) map.delete(uid)
    },
  }
}
