import { byPrecedence, isUnderWay, type Migration, outcomeOf } from '../../api/migration.ts'
import type { MigrationReason } from '../../api/migration-reasons.ts'
import { parseMigration } from '../../api/parse-migration.ts'
import { bySet } from '../../api/set-label.ts'
import type { Node } from '../../kube/resources.ts'
import type { Store } from '../../kube/store.ts'
import { type Move, takesMoves } from '../../slot/decide/move.ts'

/** Index of Migrations whose target could not be given the memory, by the uid of the pod that was to move. */
const byFailedSource = 'failedSource'

/** Migrations that are under way, by the set of the pod that moves, and those whose target has failed. */
export const migrationIndexes: Readonly<Record<string, (migration: Migration) => readonly string[]>> = {
  [bySet]: migration =>
    isUnderWay(migration) && migration.status?.source !== undefined
      ? [`${migration.metadata.namespace}/${migration.status.source.set}`]
      : [],
  [byFailedSource]: migration =>
    migration.status?.source !== undefined && outcomeOf(migration)?.reason === targetFailed
      ? [migration.status.source.uid]
      : [],
}

const targetFailed: MigrationReason = 'TargetFailed'

export interface MovesDeps {
  readonly migrations: Pick<Store<Migration>, 'by'>
  readonly nodeOf: (name: string) => Node | undefined
  /** Names of all nodes with an agent. */
  readonly nodes: () => readonly string[]
}

/** Returns the moves that Migrations ask of this set, in their order. */
export function observeMoves(setKey: string, { migrations, nodes, nodeOf }: MovesDeps): readonly Move[] {
  const underWay = migrations.by(bySet, setKey)
  if (underWay.length === 0) return []
  return [...underWay].sort(byPrecedence).flatMap((migration): Move[] => {
    const parsed = parseMigration(migration)
    const uid = migration.status?.source?.uid
    if (!parsed.ok || uid === undefined) return []
    const { nodeSelector, maxDowntimeMs } = parsed.wish
    const avoid = migrations.by(byFailedSource, uid).flatMap(({ status }) => status?.target?.node ?? [])
    return [
      {
        ...{ name: migration.metadata.name, uid: migration.metadata.uid },
        ...{ source: uid, nodeSelector, avoid: [...new Set(avoid)] },
        maxDowntimeMs: migration.status?.acceptsDowntime === true ? undefined : maxDowntimeMs,
        nodes: new Set(nodes().filter(name => takesMoves(nodeOf(name), nodeSelector))),
      },
    ]
  })
}
