/** Makes the traces of the operator, from the objects that its controllers write. */
import type { BackupPodSet } from '../api/backuppodset.ts'
import { isFinished, type Migration } from '../api/migration.ts'
import { finishedAt } from '../api/migration-times.ts'
import { slotLeaseName } from '../api/numbered-slot.ts'
import { parseSlotLease } from '../api/slot-lease.ts'
import type { Clock } from '../kube/clock.ts'
import type { Lease, Pod } from '../kube/resources.ts'
import type { Store } from '../kube/store.ts'
import { failoverSpans, newFailovers } from './failover.ts'
import { migrationSpans } from './migration.ts'
import type { SlotChange, TraceSink } from './span.ts'

export interface FollowOptions {
  readonly sets: Pick<Store<BackupPodSet>, 'get' | 'list' | 'subscribe'>
  readonly migrations: Pick<Store<Migration>, 'list' | 'subscribe'>
  readonly pods: Pick<Store<Pod>, 'get'>
  readonly leases: Pick<Store<Lease>, 'get'>
  /** Only the leader makes traces. */
  readonly leads: () => boolean
  readonly clock: Pick<Clock, 'now'>
  readonly trace: TraceSink
}

export interface Followed {
  /**
   * Call at the start of a term: the operator before may have ended between a status and its trace. A trace that it has sent goes
   * out once more, with the same ids.
   */
  catchUp(): void
}

/** Longer than a restart of all operators takes, ms. */
const catchUpMs = 120_000

export function followTraces({
  sets,
  migrations,
  pods,
  leases,
  leads,
  clock,
  trace,
}: FollowOptions): Followed {
  const failovers = (set: BackupPodSet, before: BackupPodSet | undefined, since: number) =>
    newFailovers(set, before)
      .filter(({ failover }) => Date.parse(failover.at) >= since)
      .flatMap(each =>
        failoverSpans({ ...each, lost: pods.get(`${set.metadata.namespace}/${each.failover.from}`) }),
      )
  const changeOf = ({ metadata: { namespace }, status }: Migration): SlotChange | undefined => {
    const { source, target } = status ?? {}
    if (source === undefined || target === undefined || status?.phase !== 'Succeeded') return undefined
    const set = sets.get(`${namespace}/${source.set}`)
    const slot = slotLeaseName(source.set, source.slot)
    const object = leases.get(`${namespace}/${slot}`)
    const lease = object && parseSlotLease(object)
    if (set === undefined || lease?.holder.uid !== target.uid) return undefined
    return { owner: set.metadata.uid, slot, epoch: lease.epoch }
  }
  const moved = (migration: Migration) => migrationSpans(migration, changeOf(migration))
  sets.subscribe(({ type, object, old }) => {
    if (type === 'updated' && object.status !== old.status && leads())
      trace(() => failovers(object, old, Number.NEGATIVE_INFINITY))
  })
  migrations.subscribe(({ type, object, old }) => {
    if (type === 'updated' && isFinished(object) && !isFinished(old) && leads()) trace(() => moved(object))
  })
  return {
    catchUp() {
      const since = clock.now() - catchUpMs
      for (const set of sets.list()) trace(() => failovers(set, undefined, since))
      for (const migration of migrations.list())
        if ((finishedAt(migration.status ?? {}) ?? 0) >= since) trace(() => moved(migration))
    },
  }
}
