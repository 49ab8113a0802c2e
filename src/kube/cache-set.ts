/** The caches of one process, which start, become fresh and end together. */
import { linkedTo } from './abort.ts'
import type { Api } from './api-types.ts'
import { type Clock, elapses } from './clock.ts'
import { type CacheView, cacheView } from './consistency.ts'
import { freshen } from './freshen.ts'
import { type Check, freshCheck, syncedCheck } from './health.ts'
import type { Log } from './log.ts'
import type { ReflectorMetrics } from './metrics-hooks.ts'
import type { KubeObject } from './object.ts'
import type { Random } from './random.ts'
import { createReflector, type Reflector, type ReflectorOptions } from './reflector.ts'
import { type Resource, resourceName } from './resources.ts'
import { selectorOf } from './selector.ts'
import { createStore, type Store, type StoreOptions } from './store.ts'

export interface CacheOptions<T extends KubeObject>
  extends Pick<ReflectorOptions<T>, 'query' | 'transform' | 'idleTimeoutMs'>,
    StoreOptions<T> {
  /**
   * How long a process that wants to lead waits for the first complete list. `required` (default): as long as it takes.
   * `briefly`: three seconds, for resources that may be missing or forbidden. `not`: not at all.
   */
  readonly awaited?: 'required' | 'briefly' | 'not' | undefined
  /** Returns true while readiness depends on this cache. Default: always, unless it is `awaited: 'not'`. */
  readonly isNeeded?: (() => boolean) | undefined
}

/** The store of a resource, and how far its mirror is. */
export interface Cache<T extends KubeObject> extends Store<T> {
  readonly resource: Resource<T>
  /** True once the store has been complete. */
  hasSynced(): boolean
  /** Resolves when the store has been complete once. @throws the signal's reason. */
  synced(signal: AbortSignal): Promise<void>
  /** Why it has no news: the message of the last failure. */
  problem(): string | undefined
}

export interface CacheSet {
  /**
   * Adds a cache. A set has one for each resource: a second one would leave it open which of them must show a write.
   * @throws TypeError when there is one already.
   */
  cache<T extends KubeObject>(resource: Resource<T>, options?: CacheOptions<T>): Cache<T>
  /**
   * For `createConsistencyStore`: the caches that are awaited. No pass may wait for a write that a cache never shows
   * because it is forbidden.
   */
  readonly view: CacheView
  /** Fails until the needed caches are complete. */
  readonly isSynced: Check
  /** Returns a check that fails while a needed cache has had no news for longer than `maxMs`. */
  isFresh(maxMs: number): Check
  /** Fills the caches until the signal fires. No cache can be added after this call. */
  run(signal: AbortSignal): Promise<void>
  /**
   * Resolves when this process may lead: a candidate with empty caches would keep a warm one from leading.
   * @throws the signal's reason.
   */
  awaited(signal: AbortSignal): Promise<void>
  /**
   * The barrier at the beginning of a term, for the caches that are complete; see `freshen`. The first list of any other
   * cache is newer than this call.
   * @throws GiveBack after `patienceMs`; the signal's reason.
   */
  freshen(patienceMs: number, signal: AbortSignal): Promise<void>
  /** Ends all pauses after failures, because the server is reachable again. */
  kick(): void
}

export interface CacheSetOptions {
  readonly api: Pick<Api, 'list' | 'watch'>
  readonly clock: Clock
  readonly random: Random
  readonly log: Log
  readonly metrics?: ReflectorMetrics | undefined
}

const briefMs = 3_000

interface Member {
  readonly reflector: Reflector
  readonly awaited: 'required' | 'briefly' | 'not'
  readonly isNeeded: () => boolean
}

/** Creates an empty set of caches. */
export function createCacheSet(mirror: CacheSetOptions): CacheSet {
  const { clock, log } = mirror
  const stores: Record<string, Store<KubeObject>> = {}
  const selects: Record<string, (object: KubeObject) => boolean> = {}
  const members = new Map<string, Member>()
  let isRunning = false

  const reflectors = (which: (member: Member) => boolean): Record<string, Reflector> =>
    Object.fromEntries(
      [...members].filter(([, member]) => which(member)).map(([name, { reflector }]) => [name, reflector]),
    )
  const needed = () => reflectors(({ isNeeded }) => isNeeded())
  const synced = (which: Member['awaited'], signal: AbortSignal) =>
    Promise.all(
      Object.values(reflectors(({ awaited }) => awaited === which)).map(each => each.synced(signal)),
    )

  return {
    cache(resource, options = {}) {
      const {
        awaited = 'required',
        isNeeded = () => awaited !== 'not',
        indexes,
        freeze,
        ...mirrored
      } = options
      const name = resourceName(resource)
      if (members.has(name)) throw new TypeError(`there is a cache of ${name} already`)
      if (isRunning) throw new TypeError(`too late for a cache of ${name}: the others are running`)
      const store = createStore({ ...(indexes && { indexes }), ...(freeze && { freeze }) })
      const reflector = createReflector({ ...mirror, ...mirrored, resource, store })
      if (awaited !== 'not') stores[name] = store
      selects[name] = selectorOf(mirrored.query ?? {})
      members.set(name, { reflector, awaited, isNeeded })
      return Object.assign(store, {
        resource,
        hasSynced: reflector.hasSynced,
        synced: reflector.synced,
        problem: reflector.problem,
      })
    },
    view: cacheView(stores, selects),
    isSynced: syncedCheck(needed),
    isFresh: maxMs => freshCheck(needed, maxMs),
    async run(signal) {
      isRunning = true
      await Promise.all([...members.values()].map(({ reflector }) => reflector.run(signal)))
    },
    async awaited(signal) {
      await synced('required', signal)
      using over = linkedTo(signal)
      await Promise.race([synced('briefly', over.signal), elapses(clock, briefMs, over.signal)])
      signal.throwIfAborted()
      over.abort()
    },
    freshen: (patienceMs, signal) =>
      freshen(
        { caches: reflectors(({ reflector }) => reflector.hasSynced()), patienceMs, clock, log },
        signal,
      ),
    kick: () => {
      for (const { reflector } of members.values()) reflector.kick()
    },
  }
}
