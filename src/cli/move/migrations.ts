import { isFinished, type Migration, migrations, outcomeOf, phaseTime } from '../../api/migration.ts'
import { listAll } from '../../kube/list-all.ts'
import { apiVersionOf } from '../../kube/resources.ts'
import { table } from '../../terminal/table.ts'
import { encoded, isData } from '../output/answer.ts'
import { ageOf, bytes, duration } from '../output/quantities.ts'
import type { Session } from '../session.ts'
import { type Paint, painter } from '../terminal.ts'
import { withKind } from './migrate.ts'

export interface MigrationsOptions {
  readonly allNamespaces?: boolean
  readonly watch?: boolean
}

/** How often to look at all Migrations, ms. */
const pollMs = 1_000

/**
 * Shows the Migrations that are under way and those that have ended, the newest last; with `watch` again after each change until
 * the session ends.
 *
 * @throws KubeError.
 */
export async function showMigrations(session: Session, options: MigrationsOptions): Promise<void> {
  const { api, call, clock, namespace, output, signal, terminal } = session
  const isAll = options.allNamespaces === true
  const scope = isAll ? {} : { namespace }
  let last = ''
  while (!signal.aborted) {
    const { objects } = await listAll(api, migrations, scope, call)
    const all = [...objects].sort(byAge)
    const next = isData(output)
      ? encoded(output, listOf(all))
      : pictureOf(all, { isAll, namespace, now: clock.now(), paint: painter(terminal.colour) })
    if (options.watch !== true) {
      terminal.out(next)
      return
    }
    // Programs read one document after the other.
    if (next !== last && isData(output)) terminal.out(next)
    else if (next !== last) terminal.redraw(next)
    last = next
    await clock.sleep(pollMs, signal).catch((error: unknown) => {
      if (!signal.aborted) throw error
    })
  }
}

const listOf = (all: readonly Migration[]) => ({
  ...{ apiVersion: apiVersionOf(migrations), kind: `${migrations.kind}List` },
  items: all.map(withKind),
})

function byAge(one: Migration, other: Migration): number {
  const [a, b] = [one, other].map(({ metadata }) => metadata.creationTimestamp ?? '')
  return a === b ? 0 : (a ?? '') < (b ?? '') ? -1 : 1
}

interface Picture {
  readonly isAll: boolean
  readonly namespace: string
  /** Wall clock, ms. */
  readonly now: number
  readonly paint: Paint
}

function pictureOf(all: readonly Migration[], { isAll, namespace, now, paint }: Picture): string {
  if (all.length === 0)
    return isAll
      ? 'no Migrations in this cluster'
      : `no Migrations in namespace ${namespace} (-A: in all namespaces)`
  return table(
    [
      ...(isAll ? ['NAMESPACE'] : []),
      ...['NAME', 'POD', 'FROM', 'TO', 'PHASE', 'FOR', 'SIZE', 'STOPPED', 'WHY'],
    ],
    all.map(migration => {
      const { metadata, spec, status = {} } = migration
      const { source, target, phase = 'Pending', bytes: size, downtimeMilliseconds: ms } = status
      return [
        ...(isAll ? [metadata.namespace ?? ''] : []),
        metadata.name,
        spec.source.name,
        source?.node ?? '-',
        target?.node ?? '-',
        paint(phase === 'Failed' ? 'red' : phase === 'Succeeded' ? 'green' : 'bold', phase),
        ageOf(sinceOf(migration), now),
        size === undefined ? '-' : bytes(size),
        ms === undefined ? '-' : duration(ms / 1000),
        whyOf(migration),
      ]
    }),
  )
}

/** Returns when it entered its phase. */
const sinceOf = ({ metadata, status = {} }: Migration): string | undefined =>
  phaseTime(status, status.phase) ?? metadata.creationTimestamp

/** Tells what it waits for, or why it has failed. */
function whyOf(migration: Migration): string {
  const word = outcomeOf(migration)
  if (word === undefined) return migration.status?.phase === undefined ? 'no operator has seen it yet' : ''
  return isFinished(migration) && word.status === 'True' ? '' : `${word.reason}: ${word.message}`
}
