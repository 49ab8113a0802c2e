import type { Clock } from '../kube/clock.ts'

/**
 * Measures for how long pods are stopped, by this process' own clock: from its first sight of the request to stop a pod until its
 * first sight of the successor that serves. Both are as late as a watch is. Nothing is known of stops that another process saw begin.
 */
export interface Stops {
  noteStopping(migration: string, isStopping: boolean): void
  /** @returns the ms, once the successor serves; undefined: not measured, or not over. */
  noteServing(migration: string, serves: boolean): number | undefined
  /** Forgets all others. */
  keep(migrations: ReadonlySet<string>): void
}

export function createStops(clock: Pick<Clock, 'monotonic'>): Stops {
  const begun = new Map<string, number>()
  const ended = new Map<string, number>()
  return {
    noteStopping(migration, isStopping) {
      if (!isStopping) begun.delete(migration)
      else if (!begun.has(migration)) begun.set(migration, clock.monotonic())
    },
    noteServing(migration, serves) {
      const at = begun.get(migration)
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
