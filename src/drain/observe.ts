import type { BackupPodSet } from '../api/backuppodset.ts'
import { drainedNodeOf, drainMigrationName, drainNumberIn, mostTries } from '../api/drain.ts'
import { drainOf } from '../api/leaving.ts'
import { isFinished, type Migration, outcomeOf } from '../api/migration.ts'
import { waitsForUser } from '../api/migration-reasons.ts'
import { finishedAt } from '../api/migration-times.ts'
import { kindLabelOf } from '../api/pod-kind.ts'
import { setsNamedBy } from '../api/set-label.ts'
import { keyOfRef } from '../kube/object.ts'
import type { Lease, Node, Pod } from '../kube/resources.ts'
import type { Store } from '../kube/store.ts'
import { slotOf } from '../slot/observe/candidate.ts'
import { type ProtectedSet, protectedSet } from './protected-set.ts'
import type { Attempt, Callable, DrainView, LeavingPrimary, Waiting } from './view.ts'

export interface DrainStores {
  readonly migrations: Store<Migration>
  readonly sets: Store<BackupPodSet>
  readonly pods: Store<Pod>
  readonly leases: Store<Lease>
  readonly nodes: Store<Node>
}

/** Returns the nodes that are drained, with the reason. */
export const drainedNodes = (nodes: Store<Node>): ReadonlyMap<string, string> =>
  new Map(
    nodes.list().flatMap(node => {
      const why = drainOf(node)
      return why === undefined ? [] : [[node.metadata.name, why] as const]
    }),
  )

/** Returns the Migrations of drains that have not ended. */
export const openDrains = (migrations: Store<Migration>): readonly Migration[] =>
  migrations
    .list()
    .filter(
      each =>
        each.metadata.deletionTimestamp === undefined &&
        drainedNodeOf(each) !== undefined &&
        !isFinished(each),
    )

/** Reads the caches only. */
export function observeDrain(stores: DrainStores): DrainView {
  const drained = drainedNodes(stores.nodes)
  const known = new Map<string, ProtectedSet | undefined>()
  const setAt = (key: string): ProtectedSet | undefined => {
    if (!known.has(key)) known.set(key, protectedSet(stores.leases, stores.sets.get(key)))
    return known.get(key)
  }
  const byPod = migrationsByPod(stores.migrations)
  const primaries = stores.pods
    .list()
    .flatMap(pod => leavingIn(pod, drained, setAt, byPod, stores.migrations))
  const migrations = openDrains(stores.migrations).flatMap(each => callableIn(each, stores, setAt))
  return { primaries, migrations }
}

type SetAt = (key: string) => ProtectedSet | undefined

/** By the key of the pod that their spec names. */
function migrationsByPod(migrations: Store<Migration>): ReadonlyMap<string, readonly Migration[]> {
  const all = new Map<string, Migration[]>()
  for (const each of migrations.list()) {
    const key = keyOfRef({ namespace: each.metadata.namespace, name: each.spec.source.name })
    const same = all.get(key)
    if (same === undefined) all.set(key, [each])
    else same.push(each)
  }
  return all
}

function leavingIn(
  pod: Pod,
  drained: ReadonlyMap<string, string>,
  setAt: SetAt,
  byPod: ReadonlyMap<string, readonly Migration[]>,
  migrations: Pick<Store<Migration>, 'get'>,
): readonly LeavingPrimary[] {
  const { namespace = '', name, uid, deletionTimestamp } = pod.metadata
  const node = pod.spec?.nodeName ?? ''
  const why = drained.get(node)
  if (why === undefined || deletionTimestamp !== undefined || kindLabelOf(pod) !== 'primary') return []
  const [key = ''] = setsNamedBy(pod)
  const owner = setAt(key)
  const slot = slotOf(pod)
  if (owner === undefined || slot === undefined || owner.slots.get(slot)?.holder.uid !== uid) return []
  const named = byPod.get(keyOfRef({ namespace, name })) ?? []
  const its = named.filter(({ spec, status }) => (spec.source.uid ?? status?.source?.uid ?? uid) === uid)
  const last = lastIn(its, name)
  // Of any pod: a user may have given the name to a Migration of another one.
  const isTaken = (number: number) =>
    migrations.get(keyOfRef({ namespace, name: drainMigrationName(name, number) })) !== undefined
  return [
    {
      ...{ namespace, slot, name, uid, node, why, last },
      set: { name: owner.set.name, uid: owner.set.uid },
      isMoving: its.some(isOfDrains),
      waits: its.filter(isOfDrains).flatMap(waitingIn)[0],
      next: nextNumber(isTaken, last?.number ?? 0),
    },
  ]
}

/**
 * True for one that a drain may rely on: others have budgets, time-outs and finalizers of their users. It begins when a user's of the
 * same slot has ended, and before those that wait.
 */
const isOfDrains = (migration: Migration): boolean =>
  !isFinished(migration) &&
  migration.metadata.deletionTimestamp === undefined &&
  migration.spec.priority === 'SystemCritical'

function waitingIn(migration: Migration): readonly Waiting[] {
  const word = outcomeOf(migration)
  return word !== undefined && waitsForUser(migration)
    ? [{ migration: migration.metadata.uid, reason: word.reason, message: word.message }]
    : []
}

/** Returns the first free number after this one. */
function nextNumber(isTaken: (number: number) => boolean, after: number): number | undefined {
  for (let step = 0; step < mostTries; step += 1) {
    const number = ((after + step) % mostTries) + 1
    if (!isTaken(number)) return number
  }
  return undefined
}

function lastIn(migrations: readonly Migration[], pod: string): Attempt | undefined {
  const attempts = migrations.flatMap((each): Attempt[] => {
    const number = drainNumberIn(each.metadata.name, pod)
    if (number === undefined || !isFinished(each)) return []
    const { reason = 'Unknown', message = '' } = outcomeOf(each) ?? {}
    return [{ number, endedAt: finishedAt(each.status ?? {}) ?? 0, reason, message }]
  })
  return attempts.sort((a, b) => b.endedAt - a.endedAt || b.number - a.number)[0]
}

const stoppable: ReadonlySet<string | undefined> = new Set([undefined, 'Pending', 'Reserving', 'Preparing'])

function callableIn(
  migration: Migration,
  { nodes, pods }: Pick<DrainStores, 'nodes' | 'pods'>,
  setAt: SetAt,
): readonly Callable[] {
  const { namespace = '', name, uid, resourceVersion } = migration.metadata
  const node = drainedNodeOf(migration)
  if (node === undefined || !stoppable.has(migration.status?.phase)) return []
  const object = nodes.get(node)
  const pod = pods.get(keyOfRef({ namespace, name: migration.spec.source.name }))
  const [key = ''] = pod === undefined ? [] : setsNamedBy(pod)
  // A pod or node that the caches do not show says nothing.
  const isNeedless =
    (object !== undefined && drainOf(object) === undefined) || (pod !== undefined && setAt(key) === undefined)
  return [{ ...{ namespace, name, uid, resourceVersion, node }, isNeedless }]
}
