/**
 * Keeps a store equal to the API server's state, through every failure, until it is stopped.
 *
 *     snapshot (WatchList, or LIST in pages) -> watch -> on Gone: snapshot again; on any other failure: after a pause,
 *     watch again from the last version.
 */

import { unlessAborted } from './abort.ts'
import type { Api } from './api-types.ts'
import type { Clock } from './clock.ts'
import { isKubeError, KubeError, messageOf } from './errors.ts'
import { listAll } from './list-all.ts'
import type { Log } from './log.ts'
import type { ReflectorMetrics } from './metrics-hooks.ts'
import { type KubeObject, keyOf, parseResourceVersion } from './object.ts'
import type { Random } from './random.ts'
import { createPauses } from './reflector-pauses.ts'
import { type Resource, resourceName } from './resources.ts'
import type { MutableStore } from './store.ts'

export interface ReflectorOptions<T extends KubeObject> {
  readonly api: Pick<Api, 'list' | 'watch'>
  readonly resource: Resource<T>
  /** The part of the resource to mirror. Default: all of it. */
  readonly query?: {
    readonly namespace?: string | undefined
    readonly labelSelector?: string | undefined
    readonly fieldSelector?: string | undefined
  }
  readonly store: MutableStore<T>
  readonly clock: Clock
  readonly random: Random
  readonly log: Log
  readonly metrics?: ReflectorMetrics | undefined
  /** Applied to every object before it is stored. Default: drops `metadata.managedFields`. */
  readonly transform?: (object: T) => T
  /** A connection without a byte for this many milliseconds counts as dead. Default 90 s. */
  readonly idleTimeoutMs?: number | undefined
}

export interface Reflector {
  /** Mirrors until the signal fires, then resolves. Never rejects because of the server or the network. */
  run(signal: AbortSignal): Promise<void>
  /** Resolves when the store has been complete once. @throws the signal's reason. */
  synced(signal: AbortSignal): Promise<void>
  hasSynced(): boolean
  /** Why it has no news: the message of the last failure. Undefined as soon as the server has sent anything since. */
  problem(): string | undefined
  /**
   * Abandons the running watch with all its events in flight, and takes a snapshot from the server that is at least as
   * new as this call. Resolves when the snapshot is in the store. @throws the signal's reason.
   */
  refresh(signal: AbortSignal): Promise<void>
  /** Ends a pause after a failure, because the server is reachable again. */
  kick(): void
  /** Milliseconds since the server last sent anything, including bookmarks, which come about every minute. */
  newsAgeMs(): number
}

/** A watch that lived this long was sound: the next failure starts a new series. */
const soundWatchMs = 10_000
/** A server has no good reason to end a watch this early: treated as a failure, to avoid a tight loop. */
const shortWatchMs = 1_000
/**
 * How many snapshots older than the store are refused before one is accepted (the server was restored from a backup).
 */
const maxOlderSnapshots = 5

export function createReflector<T extends KubeObject>(options: ReflectorOptions<T>): Reflector {
  const { api, resource, query = {}, store, clock, random, metrics } = options
  const { transform = withoutManagedFields, idleTimeoutMs } = options
  const name = resourceName(resource)
  const log = options.log
  const synced = Promise.withResolvers<void>()
  let hasSynced = false
  let started = false
  let lastNewsAt = Number.NEGATIVE_INFINITY
  let problem: string | undefined
  /** Callbacks that wait for a snapshot begun after their call. */
  let refreshes: (() => void)[] = []
  /** Ends the current attempt or pause, for a new snapshot. */
  let interrupt: (() => void) | undefined
  const pauses = createPauses(clock, random)

  const notifying = (act: () => void) => {
    try {
      act()
    } catch (error) {
      // Subscribers must handle their own errors: the store is complete, and the mirror must not stop because of them.
      metrics?.subscriberError?.(name)
      log.error({ err: error, resource: name }, 'a subscriber of the store threw')
    }
  }

  const news = () => {
    lastNewsAt = clock.monotonic()
    problem = undefined
  }

  let olderSnapshots = 0
  const adopt = (objects: Iterable<T>, version: bigint) => {
    if (version < store.resourceVersion() && ++olderSnapshots <= maxOlderSnapshots) {
      // A lagging server's past must not be taken for the present: deletes would be undone and creates forgotten.
      throw new KubeError(
        'Unavailable',
        `list ${name}: version ${version} is older than the known version ${store.resourceVersion()}`,
      )
    }
    olderSnapshots = 0
    metrics?.list?.(name)
    notifying(() => store.replace(objects, version))
    news()
    if (!hasSynced)
      log.info({ resource: name, objects: store.size, resourceVersion: String(version) }, 'synced')
    hasSynced = true
    synced.resolve()
    for (const resolve of refreshes) resolve()
    refreshes = []
  }

  /**
   * Records `version` as seen. Calls `apply` first, since a version counts as seen only when its object is in the
   * store.
   */
  const take = (version: string, at: Progress, apply?: () => void) => {
    const next = parseResourceVersion(version)
    if (at.version !== undefined && next < parseResourceVersion(at.version)) {
      throw new KubeError(
        'Gone',
        `watch ${name}: the server went back from version ${at.version} to ${version}`,
      )
    }
    if (apply) notifying(apply)
    at.version = version
    store.advance(next)
    news()
  }

  /**
   * Follows one watch until it ends. `at.version` is, even after a failure, the version up to which the store is
   * complete.
   */
  const follow = async (at: Progress, signal: AbortSignal) => {
    const from = at.version
    let collecting = from === undefined ? new Map<string, T>() : undefined
    metrics?.watch?.(name)
    const events = api.watch(
      resource,
      {
        ...query,
        ...(from === undefined ? { sendInitialEvents: true } : { resourceVersion: from }),
        // Spread out, so that the watches of a restarted server do not all expire together ever after.
        timeoutSeconds: 300 + Math.floor(random.next() * 301),
      },
      { signal, idleTimeoutMs },
    )
    for await (const event of events) {
      // Drops events in flight: they must not complete a snapshot that was requested after them.
      signal.throwIfAborted()
      metrics?.event?.(name, event.type)
      at.events += 1
      if (event.type === 'BOOKMARK') {
        if (collecting && event.initialEventsEnd) {
          adopt(collecting.values(), parseResourceVersion(event.resourceVersion))
          collecting = undefined
        }
        if (collecting) continue
        take(event.resourceVersion, at)
        continue
      }
      const object = transform(event.object)
      const key = keyOf(object)
      if (collecting) {
        if (event.type === 'DELETED') collecting.delete(key)
        else collecting.set(key, object)
        continue
      }
      take(object.metadata.resourceVersion, at, () =>
        event.type === 'DELETED' ? store.remove(key, object) : store.upsert(object),
      )
    }
    if (collecting)
      throw new KubeError('Unavailable', `watch ${name}: ended before the initial events were complete`)
  }

  const snapshotByList = async (signal: AbortSignal): Promise<string> => {
    const { objects, resourceVersion } = await listAll(api, resource, query, { signal })
    signal.throwIfAborted()
    adopt(objects.map(transform), parseResourceVersion(resourceVersion))
    return resourceVersion
  }

  const mirror = async (end: AbortSignal) => {
    let version: string | undefined
    let watchList = true
    let goneInARow = 0

    while (!end.aborted) {
      const attempt = new AbortController()
      interrupt = () => attempt.abort(new KubeError('Aborted', `watch ${name}: closed for a new snapshot`))
      const onEnd = () => attempt.abort(end.reason)
      end.addEventListener('abort', onEnd, { once: true })
      const { signal } = attempt
      if (refreshes.length > 0) version = undefined
      const at: Progress = { version, events: 0 }
      const startedAt = clock.monotonic()
      const lived = () => clock.monotonic() - startedAt
      try {
        if (version === undefined && !watchList) at.version = await snapshotByList(signal)
        await follow(at, signal)
        version = at.version
        if (lived() >= soundWatchMs) pauses.ordinary.reset()
        else if (lived() < shortWatchMs && at.events === 0) await pauses.rest(pauses.ordinary.next(), signal)
        pauses.refused.reset()
        goneInARow = 0
      } catch (error) {
        if (end.aborted) return
        if (signal.aborted) continue
        version = at.version
        if (lived() >= soundWatchMs) {
          pauses.ordinary.reset()
          pauses.refused.reset()
        }
        metrics?.error?.(name, isKubeError(error) ? error.code : 'Unknown')
        problem = messageOf(error)
        if (isKubeError(error, 'Gone')) {
          log.info({ resource: name, resourceVersion: version }, 'the version is too old, listing again')
          version = undefined
          // The first time at once. A server that answers Gone to fresh versions is broken and must not be hammered.
          if (lived() >= soundWatchMs) goneInARow = 0
          if (goneInARow++ > 0) await pauses.rest(pauses.ordinary.next(), signal)
          continue
        }
        if (version === undefined && watchList && isKubeError(error, 'Invalid', 'BadRequest')) {
          log.info({ resource: name, err: error }, 'the server does not stream lists, listing in pages')
          watchList = false
          continue
        }
        const refused = isKubeError(error, 'Unauthorized', 'Forbidden')
        const asked = isKubeError(error) ? (error.retryAfterMs ?? 0) : 0
        const pauseMs = Math.max((refused ? pauses.refused : pauses.ordinary).next(), asked)
        log.warn({ resource: name, err: error, pauseMs }, 'watch failed, retrying after a pause')
        await pauses.rest(pauseMs, signal, !refused && asked === 0)
      } finally {
        end.removeEventListener('abort', onEnd)
      }
    }
  }

  return {
    async run(signal) {
      if (started) throw new TypeError(`the reflector of ${name} is already running`)
      started = true
      metrics?.gauges?.(name, () => ({
        lastEventAgeSeconds: (clock.monotonic() - lastNewsAt) / 1000,
        objects: store.size,
        resourceVersion: store.resourceVersion(),
        synced: hasSynced,
      }))
      try {
        await mirror(signal)
      } catch (error) {
        // Errors after the signal belong to the stop; any other error is a bug and must be visible.
        if (!signal.aborted) throw error
      }
    },
    synced: signal => unlessAborted(synced.promise, signal),
    hasSynced: () => hasSynced,
    problem: () => problem,
    refresh(signal) {
      const { promise, resolve } = Promise.withResolvers<void>()
      refreshes.push(resolve)
      interrupt?.()
      return unlessAborted(promise, signal)
    },
    kick: pauses.kick,
    newsAgeMs: () => clock.monotonic() - lastNewsAt,
  }
}

/** Progress of one attempt. */
interface Progress {
  version: string | undefined
  events: number
}

/** managedFields take half of a typical object's memory, and are of no use to a reader. */
function withoutManagedFields<T extends KubeObject>(object: T): T {
  if (object.metadata.managedFields === undefined) return object
  const { managedFields: _, ...metadata } = object.metadata
  return { ...object, metadata }
}
