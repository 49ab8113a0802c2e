import type { Clock } from '../kube/clock.ts'

/** How long a Migration has looked for a moment in which its pod would be stopped for a short time only. */
export interface Waited {
  /** Generations that the target has had meanwhile: each is another prediction. */
  readonly generations: number
  readonly ms: number
}

/**
 * Counts the generations that reach the target of each Migration, by this process' own clock. The next leader starts to count from zero, so
 * a Migration waits longer and never less.
 */
export interface Patience {
  /** @param generation that the target has; undefined: it has none, and the count begins again. */
  note(migration: string, generation: number | undefined): Waited | undefined
  /** Forgets all others. */
  keep(migrations: ReadonlySet<string>): void
}

interface Count {
  readonly generation: number
  readonly generations: number
  readonly since: number
}

export function createPatience(clock: Pick<Clock, 'monotonic'>): Patience {
  const counts = new Map<string, Count>()
  return {
    note(migration, generation) {
      if (generation === undefined) {
        counts.delete(migration)
        return undefined
      }
      const before = counts.get(migration)
      const isNew = before?.generation !== generation
      const count: Count = {
        generation,
        generations: (before?.generations ?? 0) + (isNew ? 1 : 0),
        since: before?.since ?? clock.monotonic(),
      }
      counts.set(migration, count)
      return { generations: count.generations, ms: clock.monotonic() - count.since }
    },
    keep(migrations) {
      for (const uid of counts.keys()) if (!migrations.has(uid)) counts.delete(uid)
    },
  }
}
