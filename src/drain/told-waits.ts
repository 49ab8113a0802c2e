import { isFinished, type Migration } from '../api/migration.ts'
import { eventReasons } from '../api/reasons.ts'
import type { EventRecord } from '../kube/event-record.ts'
import type { Store } from '../kube/store.ts'
import type { LeavingPrimary } from './view.ts'

/** An event about a primary that leaves its node. */
export interface Told extends Pick<EventRecord, 'type' | 'reason' | 'note'> {
  readonly primary: LeavingPrimary
}

export const drainWaits = (primary: LeavingPrimary, why: string): Told => ({
  ...{ primary, type: 'Warning', reason: eventReasons.drainWaits },
  note: `${primary.name} has not left node ${primary.node}: ${why}`,
})

/**
 * Remembers which waits an event has told: each reason of a Migration once, because a pass follows every change of a pod. An operator
 * that has just begun to lead tells them again, which the recorder counts in the same event.
 */
export function createToldWaits(): {
  news(waiting: readonly LeavingPrimary[], migrations: Store<Migration>): readonly Told[]
} {
  /** The reasons, by the uid of the Migration. */
  const told = new Map<string, Set<string>>()
  return {
    news(waiting, migrations) {
      const open = new Set(migrations.list().flatMap(each => (isFinished(each) ? [] : [each.metadata.uid])))
      for (const uid of told.keys()) if (!open.has(uid)) told.delete(uid)
      return waiting.flatMap(primary => {
        const { waits } = primary
        if (waits === undefined) return []
        const known = told.get(waits.migration) ?? new Set()
        if (known.has(waits.reason)) return []
        told.set(waits.migration, known.add(waits.reason))
        return [drainWaits(primary, `${waits.reason}: ${waits.message}`)]
      })
    },
  }
}
