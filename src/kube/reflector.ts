/**
 * Keeps a store equal to what the API server holds, through every failure, until it is told to stop.
 *
 *   snapshot (WatchList, or LIST in pages) -> watch -> on Gone: snapshot again; on anything else: watch on from the
 *   last version after a pause.
 */

import { unlessAborted } from './abort.ts'
import type { Api } from './api-types.ts'
import { createBackoff } from './backoff.ts'
import { type Clock, elapses } from './clock.ts'
import { isKubeError, KubeError } from './errors.ts'
import { listAll } from './list-all.ts'
import type { Log } from './log.ts'
import type { ReflectorMetrics } from './metrics-hooks.ts'
import { type KubeObject, keyOf, parseResourceVersion } from './object.ts'
import type { Random } from './random.ts'
import { type Resource, resourceName } from './resources.ts'
import type { MutableStore } from './store.ts'

export interface ReflectorOptions<T extends KubeObject> {
  readonly api: Pick<Api, 'list' | 'watch'>
  readonly resource: Resource<T>
  /** What of the resource to mirror. Default: all of it. */
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
  /** A connection without a byte for so many milliseconds is taken for dead. Default 90 s. */
  readonly idleTimeoutMs?: number | undefined
}

export interface Reflector {
  /** Mirrors until the signal fires, then resolves. Never rejects for anything the server or the network does. */
  run(signal: AbortSignal): Promise<void>
  /** Resolves when the store has been complete once. @throws the signal's reason. */
  synced(signal: AbortSignal): Promise<void>
  hasSynced(): boolean
  /** Why it has no news, in the words of the last failure; undefined since the server has sent anything. */
  problem(): string | undefined
  /**
   * Leaves the running watch, whatever it may still bring, and takes a snapshot from the server, which is as new as this
   * call. Resolves when it is in the store. @throws the signal's reason.
   */
  refresh(signal: AbortSignal): Promise<void>
  /** The server can be reached again: a pause after a failure ends now. */
  kick(): void
  /** Milliseconds since the server has sent anything, be it a bookmark; they come about every minute. */
  newsAgeMs(): number
}

const ordinaryPauses = { initialMs: 800, maxMs: 30_000 }
/** Refused: nothing changes until somebody changes rights or tokens, and every try is a line in the audit log. */
const refusedPauses = { initialMs: 5_000, maxMs: 60_000 }
/** A watch that lived so long was sound: the next failure is a new one. */
const soundWatchMs = 10_000
/** The server does not end watches so early for a good reason: treated as a failure, or it would be a tight loop. */
const shortWatchMs = 1_000
/** Snapshots older than the store that are refused before one is believed (the server was restored from a backup). */
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
  /** Those who wait for a snapshot that is begun after now. */
  let refreshes: (() => void)[] = []
  /** Ends the attempt or pause of now, for a new snapshot. */
  let interrupt: (() => void) | undefined
  let endPause: (() => void) | undefined

  const notifying = (act: () => void) => {
    try {
      act()
    } catch (error) {
      // Subscribers' mistakes are theirs: the store is complete, and the mirror must not stop for them.
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
        `list ${name}: version ${version} is older than ${store.resourceVersion()}, which is known already`,
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

  /** Takes the news of `version`: `apply` first, since a version is seen only when its object is in the store. */
  const take = (version: string, at: Progress, apply?: () => void) => {
    const next = parseResourceVersion(version)
    if (at.version !== undefined && next < parseResourceVersion(at.version)) {
      throw new KubeError('Gone', `watch ${name}: the server went back from ${at.version} to ${version}`)
    }
    if (apply) notifying(apply)
    at.version = version
    store.advance(next)
    news()
  }

  /** Follows one watch until it ends. `at` says, also after a failure, up to which version everything is in the store. */
  const follow = async (at: Progress, signal: AbortSignal) => {
    const from = at.version
    let collecting = from === undefined ? new Map<string, T>() : undefined
    metrics?.watch?.(name)
    const events = api.watch(
      resource,
      {
        ...query,
        ...(from === undefined ? { sendInitialEvents: true } : { resourceVersion: from }),
        // Spread out, so that all watches of a restarted server are not renewed at once ever after.
        timeoutSeconds: 300 + Math.floor(random.next() * 301),
      },
      { signal, idleTimeoutMs },
    )
    for await (const event of events) {
      // What was on its way already: a snapshot that is asked for now must not be this one.
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
    if (collecting) throw new KubeError('Unavailable', `watch ${name}: ended before the initial events did`)
  }

  const snapshotByList = async (signal: AbortSignal): Promise<string> => {
    const { objects, resourceVersion } = await listAll(api, resource, query, { signal })
    signal.throwIfAborted()
    adopt(objects.map(transform), parseResourceVersion(resourceVersion))
    return resourceVersion
  }

  const mirror = async (end: AbortSignal) => {
    const pauses = createBackoff(ordinaryPauses, random)
    const refusals = createBackoff(refusedPauses, random)
    let version: string | undefined
    let watchList = true
    let goneInARow = 0

    const rest = async (ms: number, signal: AbortSignal, mayBeCut = true) => {
      const over = new AbortController()
      const cut = () => over.abort()
      if (mayBeCut)
        endPause = () => {
          pauses.reset()
          cut()
        }
      if (signal.aborted) cut()
      else signal.addEventListener('abort', cut, { once: true })
      await elapses(clock, ms, over.signal)
      endPause = undefined
      signal.removeEventListener('abort', cut)
    }

    while (!end.aborted) {
      const attempt = new AbortController()
      interrupt = () => attempt.abort(new KubeError('Aborted', `watch ${name}: left for a new snapshot`))
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
        if (lived() >= soundWatchMs) pauses.reset()
        else if (lived() < shortWatchMs && at.events === 0) await rest(pauses.next(), signal)
        refusals.reset()
        goneInARow = 0
      } catch (error) {
        if (end.aborted) return
        if (signal.aborted) continue
        version = at.version
        if (lived() >= soundWatchMs) {
          pauses.reset()
          refusals.reset()
        }
        metrics?.error?.(name, isKubeError(error) ? error.code : 'Unknown')
        problem = error instanceof Error ? error.message : String(error)
        if (isKubeError(error, 'Gone')) {
          log.info({ resource: name, resourceVersion: version }, 'the version is too old, listing again')
          version = undefined
          // The first time at once; a server that says Gone to fresh versions is broken and must not be hammered.
          if (lived() >= soundWatchMs) goneInARow = 0
          if (goneInARow++ > 0) await rest(pauses.next(), signal)
          continue
        }
        if (version === undefined && watchList && isKubeError(error, 'Invalid', 'BadRequest')) {
          log.info({ resource: name, err: error }, 'the server does not stream lists, listing in pages')
          watchList = false
          continue
        }
        const refused = isKubeError(error, 'Unauthorized', 'Forbidden')
        const asked = isKubeError(error) ? (error.retryAfterMs ?? 0) : 0
        const pauseMs = Math.max((refused ? refusals : pauses).next(), asked)
        log.warn({ resource: name, err: error, pauseMs }, 'watch failed, going on after a pause')
        await rest(pauseMs, signal, !refused && asked === 0)
      } finally {
        end.removeEventListener('abort', onEnd)
      }
    }
  }

  return {
    async run(signal) {
      if (started) throw new TypeError(`the reflector of ${name} has been started already`)
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
        // A pause ends by throwing the signal's reason; anything else is a bug of ours and must be seen.
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
    kick: () => endPause?.(),
    newsAgeMs: () => clock.monotonic() - lastNewsAt,
  }
}

/** How far one attempt has come. */
interface Progress {
  version: string | undefined
  events: number
}

/** Half of a typical object's memory, of no use to a reader. */
function withoutManagedFields<T extends KubeObject>(object: T): T {
  if (object.metadata.managedFields === undefined) return object
  const { managedFields: _, ...metadata } = object.metadata
  return { ...object, metadata }
}
