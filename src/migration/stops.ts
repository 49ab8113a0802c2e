import type { Clock } from '../kube/clock.ts'

/**
 * Measures for how long pods are stopped, by this process' own clock, until its first sight of the successor that serves. A stop has begun
 * as the agent says in its first report of it; agents of earlier versions say nothing, and then it begins with the first sight of the request. A sight
 * is as late as a watch is. Nothing is known of stops that another process saw begin.
 */
/** A stop that was requested. */
export interface Stop {
  /** The handover, as counted in the Lease; undefined: the Lease does not count them. */
  readonly handover: number | undefined
  /** How long the pod has been stopped, by the agent; undefined: that is not known, or the pod is not stopped yet. */
  readonly stoodMs: number | undefined
}

export interface Stops {
  /** @param stop undefined: nothing is to be stopped. */
  noteStopping(migration: string, stop: Stop | undefined): void
  /** @returns the ms, once the successor serves; undefined: not measured, or not over. */
  noteServing(migration: string, serves: boolean): number | undefined
  /** Forgets all others. */
  keep(migrations: ReadonlySet<string>): void
}

export function createStops(clock: Pick<Clock, 'monotonic'>): Stops {
  const begun = new Map<string, Pick<Stop, 'handover'> & { readonly at: number; readonly isTold: boolean }>()
  const ended = new Map<string, number>()
  return {
    noteStopping(migration, stop) {
      if (stop === undefined) {
        begun.delete(migration)
        return
      }
      const { handover, stoodMs } = stop
      const before = begun.get(migration)
      // Another handover is another stop: in between, the pod may have run.
      const known = before?.handover === handover ? before : undefined
      if (known?.isTold === true || (known !== undefined && stoodMs === undefined)) return
      begun.set(migration, {
        handover,
        at: clock.monotonic() - (stoodMs ?? 0),
        isTold: stoodMs !== undefined,
      })
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
