import { isFinished } from '../api/migration.ts'
import { finishedAt } from '../api/migration-times.ts'
import type { MigrationView } from './view.ts'

/** How many finished Migrations of a set stay, if they do not say for how long. */
export const mostKept = 5

/** Returns the finished Migrations whose time is over, and those beyond the last five of their set. */
export function outlived(views: readonly MigrationView[], now: number): readonly MigrationView[] {
  const finished = views.filter(isFinished)
  const ends = (view: MigrationView) => finishedAt(view.status) ?? 0
  const ofSet = new Map<string, number>()
  return [...finished]
    .sort((a, b) => ends(b) - ends(a) || (a.name < b.name ? -1 : 1))
    .filter(view => {
      const ttlMs = view.wish.ok ? view.wish.wish.ttlMs : undefined
      if (ttlMs !== undefined) return now - ends(view) >= ttlMs
      const key = `${view.namespace}/${view.status.source?.set ?? ''}`
      const later = ofSet.get(key) ?? 0
      ofSet.set(key, later + 1)
      return later >= mostKept
    })
}
