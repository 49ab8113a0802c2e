/** The slots that Migrations move now, and the nodes to which they may go. */
import { byPrecedence, isUnderWay, type Migration, type MigrationStatus } from '../api/migration.ts'
import type { NodeReport } from '../api/node-report.ts'
import type { NumberedSlotLease } from '../api/numbered-slot.ts'
import { type ParsedMigration, parseMigration } from '../api/parse-migration.ts'
import type { Node } from '../kube/resources.ts'
import type { Store } from '../kube/store.ts'
import { type MovingSlot, takesMoves } from '../slot/decide/move.ts'

interface NodeStores {
  readonly nodes: Store<Node>
  readonly reports: Store<NodeReport>
}

/** The source of a Migration that the operator has found once. */
export type Source = NonNullable<MigrationStatus['source']>

/** A Migration for which its set acts. */
export interface UnderWay {
  readonly setKey: string
  readonly source: Source
  /** Nodes to which its source may move. */
  readonly nodes: ReadonlySet<string>
}

/** Returns the Migrations that are under way, in the order in which they choose their pods. */
export const underWayIn = (stores: NodeStores, migrations: readonly Migration[]): readonly UnderWay[] =>
  migrations
    .filter(isUnderWay)
    .sort(byPrecedence)
    .flatMap(migration => underWayOf(stores, migration))

function underWayOf(stores: NodeStores, migration: Migration): UnderWay[] {
  const { metadata, status } = migration
  const wish = parseMigration(migration)
  if (!wish.ok || status?.source === undefined) return []
  const { source } = status
  const setKey = `${metadata.namespace}/${source.set}`
  return [{ setKey, source, nodes: ableNodes(stores, source, wish.wish.nodeSelector) }]
}

/** Returns the nodes that can take the pod, and have the labels. */
export const ableNodes = (
  { nodes, reports }: NodeStores,
  source: Source,
  nodeSelector: ParsedMigration['nodeSelector'],
): ReadonlySet<string> =>
  new Set(
    nodes.list().flatMap(node => {
      const { name } = node.metadata
      const isAble = reports.get(name)?.status?.ready === true && name !== source.node
      return isAble && takesMoves(node, nodeSelector) ? [name] : []
    }),
  )

/** Returns the slots of the set that move, with this one, in the order in which the set chooses pods for them. */
export function movingSlots(
  underWay: readonly UnderWay[],
  setKey: string,
  own: MovingSlot,
  ofSet: readonly NumberedSlotLease[],
): readonly MovingSlot[] {
  const moving = underWay.flatMap(({ setKey: theirs, source, nodes }) => {
    const lease = ofSet.find(({ slot, holder }) => slot === source.slot && holder.uid === source.uid)
    return theirs !== setKey || lease === undefined ? [] : [{ lease, move: { nodes } }]
  })
  // The slot of a Migration that still waits for its turn comes last.
  return moving.some(({ lease }) => lease === own.lease) ? moving : [...moving, own]
}
