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
  /** @param of what the target has; undefined: it has nothing, and the count begins again, as with another target. */
  note(migration: string, of: Held | undefined): Waited | undefined
  /** Forgets all others. */
  keep(migrations: ReadonlySet<string>): void
}

interface Held {
  /** Uid of the pod. */
  readonly target: string
  readonly generation: number
}

interface Count extends Held {
  readonly generations: number
  readonly since: number
}

export function createPatience(clock: Pick<Clock, 'monotonic'>): Patience {
  const counts = new Map<string, Count>()
  return {
    note(migration, of) {
      if (of === undefined) {
        counts.delete(migration)
        return undefined
      }
      const known = counts.get(migration)
      const before = known?.target === of.target ? known : undefined
      const isNew = before?.generation !== of.generation
      const count: Count = {
        ...of,
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
