/** The shapes of the API client (api.ts). */

import type { Clock } from './clock.ts'
import type { Connection } from './connection.ts'
import type { Log } from './log.ts'
import type { ApiMetrics } from './metrics-hooks.ts'
import type { KubeObject, List, ObjectRef } from './object.ts'
import type { Random } from './random.ts'
import type { Resource } from './resources.ts'

export interface CallOptions {
  /** Ends the call with code Aborted. */
  readonly signal?: AbortSignal | undefined
  /** Milliseconds for the whole call including retries. Default 30 s; for a watch: until its headers. */
  readonly timeoutMs?: number | undefined
  /**
   * Called right before each try of a call other than a watch. If it throws, the call ends with that error, and this
   * try is not sent.
   */
  readonly permit?: (() => void) | undefined
}

/** Options of calls that change something. */
export interface WriteOptions extends CallOptions {
  /** Owner of the written fields. Default: the user agent's part before the slash. */
  readonly fieldManager?: string | undefined
  /** Validate and admit, but do not store. */
  readonly dryRun?: boolean | undefined
}

export interface ListQuery {
  /** Absent: all namespaces. */
  readonly namespace?: string | undefined
  readonly labelSelector?: string | undefined
  readonly fieldSelector?: string | undefined
  readonly limit?: number | undefined
  readonly continue?: string | undefined
  readonly resourceVersion?: string | undefined
  readonly resourceVersionMatch?: 'Exact' | 'NotOlderThan' | undefined
}

export interface WatchQuery {
  readonly namespace?: string | undefined
  readonly labelSelector?: string | undefined
  readonly fieldSelector?: string | undefined
  /** Events after this version. Absent and '0' have special meanings: see the Kubernetes page on API concepts. */
  readonly resourceVersion?: string | undefined
  /** WatchList: the current objects first, then a bookmark with `initialEventsEnd`, then events. */
  readonly sendInitialEvents?: boolean | undefined
  /** The server ends the watch after this many seconds. */
  readonly timeoutSeconds?: number | undefined
}

export type WatchEvent<T> =
  | { readonly type: 'ADDED' | 'MODIFIED' | 'DELETED'; readonly object: T }
  | {
      readonly type: 'BOOKMARK'
      readonly resourceVersion: string
      /** True on the bookmark that ends the initial events of a WatchList. */
      readonly initialEventsEnd: boolean
    }

export type Patch =
  | { readonly type: 'merge'; readonly body: unknown }
  | { readonly type: 'strategic'; readonly body: unknown }
  /** RFC 6902: an array of operations. */
  | { readonly type: 'json'; readonly body: readonly unknown[] }
  /** Server-side apply: the full set of fields that we own. */
  | { readonly type: 'apply'; readonly body: unknown }

export interface DeleteQuery {
  /** Preconditions: another uid or version under this name is a Conflict. */
  readonly uid?: string | undefined
  readonly resourceVersion?: string | undefined
  /** Absent: the object's own grace period. */
  readonly gracePeriodSeconds?: number | undefined
  readonly propagationPolicy?: 'Orphan' | 'Background' | 'Foreground' | undefined
  readonly dryRun?: boolean | undefined
}

export interface Api {
  get<T extends KubeObject>(resource: Resource<T>, ref: ObjectRef, options?: CallOptions): Promise<T>

  /** One page; follow `metadata.continue`, or use `listAll`. */
  list<T extends KubeObject>(resource: Resource<T>, query: ListQuery, options?: CallOptions): Promise<List<T>>

  /**
   * Creates `body`. The namespace is taken from the options, else from the body. Never retried after it may have
   * reached the server: then KubeError Unavailable or Timeout with `ambiguous`.
   */
  create<T extends KubeObject>(
    resource: Resource<T>,
    body: unknown,
    options?: WriteOptions & { readonly namespace?: string | undefined },
  ): Promise<T>

  patch<T extends KubeObject>(
    resource: Resource<T>,
    ref: ObjectRef,
    patch: Patch,
    options?: WriteOptions & {
      readonly subresource?: 'status' | 'scale' | undefined
      /** Only for apply: take over fields of other managers instead of a Conflict. */
      readonly force?: boolean | undefined
    },
  ): Promise<T>

  /** PUT. With a resourceVersion in the body a concurrent write is a Conflict. */
  replace<T extends KubeObject>(
    resource: Resource<T>,
    ref: ObjectRef,
    body: unknown,
    options?: WriteOptions & { readonly subresource?: 'status' | 'scale' | undefined },
  ): Promise<T>

  /** Resolves when the server has accepted the deletion; a graceful deletion continues afterwards. */
  delete<T extends KubeObject>(
    resource: Resource<T>,
    ref: ObjectRef,
    query?: DeleteQuery,
    options?: CallOptions,
  ): Promise<void>

  /**
   * Yields events in order until the server ends the watch (the iteration returns), something fails (it throws; an
   * expired version is Gone) or the consumer leaves the loop (the connection is closed). It always requests bookmarks.
   * A connection without a byte for `idleTimeoutMs` (default 90 s; bookmarks come about every minute) counts as dead:
   * Unavailable.
   */
  watch<T extends KubeObject>(
    resource: Resource<T>,
    query: WatchQuery,
    options?: CallOptions & { readonly idleTimeoutMs?: number | undefined },
  ): AsyncIterable<WatchEvent<T>>

  /**
   * Any other request (`/version`, `/readyz`, pods' eviction). The body is parsed when the answer is JSON, else a string.
   * Any HTTP status of 400 and above throws.
   */
  request(
    method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE',
    path: string,
    options?: CallOptions & {
      readonly body?: unknown
      readonly contentType?: string | undefined
      readonly query?: Readonly<Record<string, string>> | undefined
    },
  ): Promise<{ readonly status: number; readonly body: unknown }>

  /** Ends all calls and watches and closes every connection. */
  close(): Promise<void>
}

export interface ApiOptions {
  readonly connection: Connection
  readonly metrics?: ApiMetrics | undefined
  /** `name/version`; the name is also the default field manager. */
  readonly userAgent?: string | undefined
  readonly log?: Log | undefined
  readonly clock?: Clock | undefined
  readonly random?: Random | undefined
  /** Called at the first answer after one or more calls without an answer: the server is reachable again. */
  readonly onReachable?: (() => void) | undefined
  /** Connections for requests. Default 24. Watches have a separate pool, with one connection each. */
  readonly connections?: number | undefined
}
