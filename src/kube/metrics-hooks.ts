/**
 * Measuring points of the kit, as plain callbacks. Their consumer (Prometheus or a test's array) is not its concern.
 */

/** One HTTP request, each try counted by itself. */
export interface RequestObservation {
  /** The API server's name of the verb: `get`, `list`, `watch`, `create`, `update`, `patch`, `delete`, or `raw`. */
  readonly verb: string
  /** HTTP method. */
  readonly method: string
  /** host:port of the server. */
  readonly host: string
  /** `plural.group`, or the path of a raw request. */
  readonly resource: string
  /** HTTP status as a string, or `<error>` when there was no answer. */
  readonly code: string
  /** Seconds from sending to the complete body; for a watch to its headers. */
  readonly seconds: number
}

export interface ApiMetrics {
  /** rest_client_requests_total, rest_client_request_duration_seconds */
  request?(observation: RequestObservation): void
  /** rest_client_request_retries_total: the request will be retried. */
  retry?(observation: { readonly verb: string; readonly resource: string; readonly code: string }): void
}

/** Values that are read at each scrape. */
export interface ReflectorGauges {
  /** Seconds since the last news (event, bookmark or complete list); Infinity before the first. */
  readonly lastEventAgeSeconds: number
  readonly objects: number
  readonly resourceVersion: bigint
  readonly synced: boolean
}

/** `resource` is `plural.group`, with the `name` given to the reflector where there is one. */
export interface ReflectorMetrics {
  /** reflector_lists_total: snapshots taken, by LIST or by WatchList. */
  list?(resource: string): void
  /** reflector_watches_total: watches started. */
  watch?(resource: string): void
  /** reflector_watch_events_total by type: ADDED, MODIFIED, DELETED, BOOKMARK. */
  event?(resource: string, type: string): void
  /** reflector_errors_total by KubeError code. */
  error?(resource: string, code: string): void
  /** reflector_subscriber_errors_total: a subscriber of the store threw. */
  subscriberError?(resource: string): void
  /** Called once when the reflector starts; `read` may be called at any time after. */
  gauges?(resource: string, read: () => ReflectorGauges): void
}
