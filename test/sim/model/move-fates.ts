/** The fate of each move: how it ended, and which pod has its slot afterwards. */
import {
  isFinished,
  type Migration,
  type MigrationPhase,
  migrations,
  outcomeOf,
} from '../../../src/api/migration.ts'
import { parseNumberedSlotLease } from '../../../src/api/numbered-slot.ts'
import { leases, resourceName } from '../../../src/kube/resources.ts'
import type { Cluster } from './cluster.ts'
import type { Command } from './commands.ts'
import { later } from './machine-faults.ts'

/** A fault of the first Migration that reaches this phase. */
export interface OnPhase {
  readonly phase: MigrationPhase
  readonly afterMs: number
  readonly command: Command
}

export interface MoveFate {
  readonly name: string
  /** `succeeded`; the reason of its failure; `called off in` and the phase; `open`. */
  readonly end: string
  /** `none`: the slot is not there. */
  readonly holder: 'source' | 'target' | 'other' | 'none' | 'unknown'
}

const migrationsName = resourceName(migrations)

/** @returns a function that tells the fates until now. */
export function followMoves(cluster: Pick<Cluster, 'server'>): () => readonly MoveFate[] {
  const { server } = cluster
  const known = new Map<string, { readonly last: Migration; readonly isGone: boolean }>()
  server.subscribe((resource, { type, object }) => {
    if (resource !== migrationsName) return
    known.set(object.metadata.name, { last: object as Migration, isGone: type === 'DELETED' })
  })
  return () =>
    [...known].map(([name, { last, isGone }]) => ({
      name,
      end: endOf(last, isGone),
      holder: holderOf(
        cluster,
        last,
        [...known.values()].map(each => each.last).filter(each => each !== last),
      ),
    }))
}

function endOf(last: Migration, isGone: boolean): string {
  if (isFinished(last))
    return last.status?.phase === 'Succeeded' ? 'succeeded' : `failed as ${outcomeOf(last)?.reason}`
  return isGone ? `called off in ${last.status?.phase ?? 'Pending'}` : 'open'
}

/** @param others further moves: one of them may have moved the slot on, as that of a drain does */
function holderOf(
  { server }: Pick<Cluster, 'server'>,
  { status, spec }: Migration,
  others: readonly Migration[],
): MoveFate['holder'] {
  const { source, target } = status ?? {}
  const all = server.list(leases).flatMap(lease => parseNumberedSlotLease(lease) ?? [])
  // The operator has not found its pod yet: the name tells the pod.
  if (source === undefined)
    return all.some(({ holder }) => holder.name === spec.source.name) ? 'source' : 'unknown'
  const lease = all.find(({ group, slot }) => group === source.set && slot === source.slot)
  if (lease === undefined) return 'none'
  const origins = new Map(
    others
      .filter(each => each.status?.phase === 'Succeeded')
      .map(each => [each.status?.target?.uid, each.status?.source?.uid]),
  )
  const visited = new Set<string>()
  for (let uid: string | undefined = lease.holder.uid; uid !== undefined; uid = origins.get(uid)) {
    if (uid === source.uid) return 'source'
    if (uid === target?.uid) return 'target'
    if (visited.has(uid)) break
    visited.add(uid)
  }
  return 'other'
}

/** Calls `then` once, so long after the first Migration has reached this phase. */
export function onPhase(cluster: Cluster, { phase, afterMs }: OnPhase, then: () => void): void {
  let isOver = false
  cluster.server.subscribe((resource, { object }) => {
    if (isOver || resource !== migrationsName) return
    const { status } = object as Migration
    if ((status?.phase ?? 'Pending') !== phase) return
    isOver = true
    later(cluster, afterMs, then)
  })
}
