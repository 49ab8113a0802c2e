/** The spans of a Migration, from the times in its status. Pure. */
import {
  isFinished,
  type Migration,
  type MigrationPhase,
  type MigrationStatus,
  migrationPhases,
  outcomeOf,
} from '../api/migration.ts'
import { beganAt } from '../api/migration-times.ts'
import {
  attributesOf,
  cut,
  rootOf,
  type SlotChange,
  type Span,
  spanIdOf,
  traceOfChange,
  traceOfMigration,
} from './span.ts'

/**
 * Returns the spans of a Migration that has ended; none before.
 *
 * @param change of the slot that it has moved: then the agents' spans are in the same trace. Undefined: it has moved none.
 */
export function migrationSpans(migration: Migration, change: SlotChange | undefined): readonly Span[] {
  const { metadata, status = {} } = migration
  const times = timesOf(status)
  const [first, last] = [times[0], times.at(-1)]
  if (!isFinished(migration) || first === undefined || last === undefined) return []
  const traceId = change ? traceOfChange(change) : traceOfMigration(metadata.uid)
  const root = rootOf(traceId)
  const outcome = outcomeOf(migration)
  const hasFailed = status.phase === 'Failed'
  return [
    {
      ...{ traceId, spanId: root, name: 'migration', from: first.at, to: last.at },
      attributes: attributesOf({
        ...{ 'k8s.namespace.name': metadata.namespace, 'understudy.migration': metadata.name },
        ...{ 'understudy.set': status.source?.set, 'understudy.slot': status.source?.slot },
        ...{ 'understudy.epoch': change?.epoch, 'understudy.priority': migration.spec.priority },
        ...{ 'understudy.from': migration.spec.source.name, 'understudy.to': status.target?.name },
        ...{ 'understudy.from.node': status.source?.node, 'understudy.to.node': status.target?.node },
        ...{ 'understudy.generation': status.generation, 'understudy.bytes': status.bytes },
        'understudy.downtime_ms': status.downtimeMilliseconds,
        'understudy.predicted_downtime_ms': status.predictedDowntimeMilliseconds,
        'understudy.reason': outcome?.reason,
      }),
      ...(hasFailed && { failure: cut(outcome?.message ?? 'it has failed') }),
    },
    ...times.slice(0, -1).map(
      ({ phase, at }, index): Span => ({
        ...{ traceId, spanId: spanIdOf(traceId, 'phase', phase), parentId: root, name: phase },
        ...{ from: at, to: times[index + 1]?.at ?? at },
        attributes: {},
      }),
    ),
  ]
}

/** In the order of time: a Migration may skip phases, and return to one, whose first time counts. */
function timesOf(
  status: MigrationStatus,
): readonly { readonly phase: MigrationPhase; readonly at: number }[] {
  return migrationPhases
    .flatMap(phase => {
      const at = beganAt(status, phase)
      return at === undefined ? [] : [{ phase, at }]
    })
    .sort((a, b) => a.at - b.at)
}
