/** The objects that commands look at: sets, their pods and the nodes' reports, read once or watched. */
import { type BackupPodSet, backupPodSets } from '../api/backuppodset.ts'
import { labels } from '../api/labels.ts'
import { type MigratingPod, migratingPods as migratingPodResource } from '../api/migrating-pod.ts'
import { type Migration, migrations as migrationResource } from '../api/migration.ts'
import { type NodeReport, nodeReports, parseReport } from '../api/node-report.ts'
import type { Clock } from '../kube/clock.ts'
import { isKubeError, messageOf } from '../kube/errors.ts'
import { listAll } from '../kube/list-all.ts'
import type { Log } from '../kube/log.ts'
import type { KubeObject } from '../kube/object.ts'
import { createReflector } from '../kube/reflector.ts'
import { type Pod, pods, type Resource } from '../kube/resources.ts'
import { createStore, type MutableStore } from '../kube/store.ts'
import type { CliError } from './failure.ts'
import type { Session } from './session.ts'

/** The sets to look at, with their pods. */
export interface Scope {
  /** Absent: all namespaces. */
  readonly namespace?: string | undefined
  /** Absent: all sets. */
  readonly set?: string | undefined
  /** Also what moves pods. */
  readonly moves?: boolean | undefined
}

export interface World {
  readonly sets: readonly BackupPodSet[]
  readonly pods: readonly Pod[]
  /** Undefined: this user may not read them. */
  readonly reports: readonly NodeReport[] | undefined
  /** Absent: not asked for, or this user may not read them, or the cluster does not have the kind. */
  readonly migrations?: readonly Migration[] | undefined
  readonly migratingPods?: readonly MigratingPod[] | undefined
}

const queries = ({ namespace, set }: Scope) => ({
  sets: { namespace, fieldSelector: set === undefined ? undefined : `metadata.name=${set}` },
  pods: { namespace, labelSelector: set === undefined ? labels.set : `${labels.set}=${set}` },
  migrations: { namespace },
})

/** @throws KubeError. A user without the right to read node reports gets the rest. */
export async function readWorld({ api, call }: Session, scope: Scope): Promise<World> {
  const query = queries(scope)
  const ifAny = <O extends KubeObject>(resource: Resource<O>, of: object) =>
    listAll(api, resource, of, call).then(
      ({ objects }) => objects,
      (error: unknown) => {
        if (isKubeError(error, 'Forbidden', 'NotFound')) return undefined
        throw error
      },
    )
  const [sets, ofSets, reports, moves, moving] = await Promise.all([
    listAll(api, backupPodSets, query.sets, call),
    listAll(api, pods, query.pods, call),
    ifAny(nodeReports, {}),
    scope.moves ? ifAny(migrationResource, query.migrations) : undefined,
    scope.moves ? ifAny(migratingPodResource, query.sets) : undefined,
  ])
  return {
    ...{ sets: sets.objects, pods: ofSets.objects, reports: reports?.map(parseReport) },
    ...{ migrations: moves, migratingPods: moving },
  }
}

export interface FollowedWorld {
  /** The current state. */
  readonly now: World
  /**
   * Resolves with the first value of `look` that is not undefined. Calls `look` at once and after every change.
   *
   * @throws `late()` when there was none within `timeoutMs`; the error of `look`; the session's reason when it ends.
   */
  until<T>(look: (world: World) => T | undefined, timeoutMs: number, late: () => CliError): Promise<T>
  /** Calls `listener` after changes, at most every `everyMs`, until the session ends. */
  onChange(listener: (world: World) => void, everyMs: number): Promise<never>
}

/** @param listeners called after every change of `now()` */
export const untilIn =
  (now: () => World, listeners: Set<() => void>, clock: Clock, ended: AbortSignal): FollowedWorld['until'] =>
  (look, timeoutMs, late) => {
    const found = Promise.withResolvers<NonNullable<ReturnType<typeof look>>>()
    const check = () => {
      try {
        const value = look(now())
        if (value !== undefined && value !== null) found.resolve(value)
      } catch (error) {
        found.reject(error)
      }
    }
    const over = new AbortController()
    listeners.add(check)
    check()
    const timeout = clock
      .sleep(timeoutMs, AbortSignal.any([ended, over.signal]))
      .then(() => Promise.reject(late()))
    return Promise.race([found.promise, timeout]).finally(() => {
      listeners.delete(check)
      over.abort()
      // No caller waits for it any more.
      timeout.catch(() => undefined)
    })
  }

/**
 * Follows the world by watches while `use` runs.
 *
 * @throws KubeError when the first read fails. Later failures are reported to the user and retried.
 */
export async function followWorld<T>(
  session: Session,
  scope: Scope,
  use: (world: FollowedWorld) => Promise<T>,
): Promise<T> {
  const { api, clock, random, signal, terminal } = session
  // Reflectors continue through every failure, so a first read is needed to tell a user without rights at once.
  const first = await readWorld(session, scope)
  const query = queries(scope)
  const stores = {
    sets: createStore<BackupPodSet>(),
    pods: createStore<Pod>(),
    reports: createStore<NodeReport>(),
    migrations: createStore<Migration>(),
    migratingPods: createStore<MigratingPod>(),
  }
  const stop = new AbortController()
  const ended = AbortSignal.any([signal, stop.signal])
  const log: Log = {
    debug() {},
    info() {},
    warn: fields => terminal.err(`lost the API server, retrying: ${messageOf(fields['err'])}`),
    error: fields => terminal.err(messageOf(fields['err'])),
  }
  const mirror = <O extends KubeObject>(
    resource: Resource<O>,
    store: MutableStore<O>,
    of: object,
    more: { readonly transform?: (object: O) => O } = {},
  ) => createReflector({ api, resource, store, query: of, clock, random, log, ...more })
  const reflectors = [
    mirror(backupPodSets, stores.sets, query.sets),
    mirror(pods, stores.pods, query.pods),
    ...(first.reports === undefined
      ? []
      : [mirror(nodeReports, stores.reports, {}, { transform: parseReport })]),
    ...(first.migrations === undefined
      ? []
      : [mirror(migrationResource, stores.migrations, query.migrations)]),
    ...(first.migratingPods === undefined
      ? []
      : [mirror(migratingPodResource, stores.migratingPods, query.sets)]),
  ]
  const running = Promise.all(reflectors.map(reflector => reflector.run(ended)))
  const listeners = new Set<() => void>()
  for (const store of Object.values(stores))
    store.subscribe(() => {
      for (const listener of [...listeners]) listener()
    })
  const world: FollowedWorld = {
    get now() {
      return {
        sets: stores.sets.list(),
        pods: stores.pods.list(),
        reports: first.reports === undefined ? undefined : stores.reports.list(),
        migrations: first.migrations === undefined ? undefined : stores.migrations.list(),
        migratingPods: first.migratingPods === undefined ? undefined : stores.migratingPods.list(),
      }
    },
    until: untilIn(() => world.now, listeners, clock, ended),
    async onChange(listener, everyMs) {
      for (;;) {
        const changed = Promise.withResolvers<void>()
        const wake = () => changed.resolve()
        const end = () => changed.reject(ended.reason)
        listeners.add(wake)
        ended.addEventListener('abort', end, { once: true })
        if (ended.aborted) end()
        try {
          await changed.promise
        } finally {
          listeners.delete(wake)
          ended.removeEventListener('abort', end)
        }
        await clock.sleep(everyMs, ended)
        listener(world.now)
      }
    },
  }
  try {
    await Promise.all(reflectors.map(reflector => reflector.synced(ended)))
    return await use(world)
  } finally {
    stop.abort()
    await running
  }
}
