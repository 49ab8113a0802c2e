/**
 * The one catalogue of errors of this kit. Every failed API call throws a `KubeError`; callers decide by `code`, never
 * by message or by HTTP status.
 */

/**
 * | code | meaning | repeat? |
 * |---|---|---|
 * | Conflict | resourceVersion/uid precondition failed, or another manager owns an applied field | after reading again |
 * | NotFound, AlreadyExists | as they say | no |
 * | Gone | the resourceVersion or continue token is too old (410) | list again |
 * | Invalid, BadRequest | the server refuses the contents or the form of the request | no |
 * | Unauthorized, Forbidden | 401, 403 (also: quota, terminating namespace; see `hasCause`) | slowly |
 * | Throttled | 429; `retryAfterMs` says when. The request was NOT executed | yes |
 * | Unavailable | 5xx, or the connection failed | see `ambiguous` |
 * | Timeout | the server's or our own deadline passed | see `ambiguous` |
 * | Aborted | the caller's signal fired; `cause` is its reason | no |
 * | Unknown | anything else | no |
 */
export type KubeErrorCode =
  | 'Conflict'
  | 'NotFound'
  | 'AlreadyExists'
  | 'Forbidden'
  | 'Unauthorized'
  | 'Invalid'
  | 'Gone'
  | 'Throttled'
  | 'Unavailable'
  | 'Timeout'
  | 'Aborted'
  | 'BadRequest'
  | 'Unknown'

/** `details` of a Status, as far as the server gave it. */
export interface StatusDetails {
  readonly name?: string
  readonly group?: string
  readonly kind?: string
  readonly uid?: string
  readonly retryAfterSeconds?: number
  readonly causes?: readonly {
    readonly reason?: string
    readonly message?: string
    readonly field?: string
  }[]
}

/** A Status object, which the API server sends as the body of a failed request and as the object of an ERROR event. */
export interface Status {
  readonly kind?: 'Status'
  readonly code?: number
  readonly reason?: string
  readonly message?: string
  readonly details?: StatusDetails
}

interface KubeErrorInit {
  readonly status?: number | undefined
  readonly reason?: string | undefined
  readonly retryAfterMs?: number | undefined
  readonly details?: StatusDetails | undefined
  readonly ambiguous?: boolean | undefined
  readonly cause?: unknown
}

export class KubeError extends Error {
  override readonly name = 'KubeError'
  readonly code: KubeErrorCode
  /** HTTP status, when the server answered. */
  readonly status: number | undefined
  /** The server's machine-readable reason (`AlreadyExists`, `Expired`, ...), when it gave one. */
  readonly reason: string | undefined
  /** How long the server asks to wait, in milliseconds. */
  readonly retryAfterMs: number | undefined
  readonly details: StatusDetails | undefined
  /**
   * True when a write was sent and its outcome is unknown: it may have been executed. Settle it by reading
   * (GET of the same name, precondition on uid); never by sending a second one under another name.
   */
  readonly ambiguous: boolean

  constructor(code: KubeErrorCode, message: string, init: KubeErrorInit = {}) {
    super(message, init.cause === undefined ? undefined : { cause: init.cause })
    this.code = code
    this.status = init.status
    this.reason = init.reason
    this.retryAfterMs = init.retryAfterMs
    this.details = init.details
    this.ambiguous = init.ambiguous ?? false
  }
}

/** True if `error` is a KubeError and, if codes are given, has one of them. */
export function isKubeError(error: unknown, ...codes: readonly KubeErrorCode[]): error is KubeError {
  return error instanceof KubeError && (codes.length === 0 || codes.includes(error.code))
}

/** True if the server names this cause, e.g. `NamespaceTerminating` on a Forbidden create, `FieldManagerConflict`. */
export function hasCause(error: unknown, reason: string): boolean {
  return isKubeError(error) && (error.details?.causes ?? []).some(cause => cause.reason === reason)
}

/** The code of a failed answer. The reason is more precise than the HTTP status where both are known. */
export function codeOf(status: number, reason?: string): KubeErrorCode {
  if (reason === 'AlreadyExists') return 'AlreadyExists'
  if (reason === 'Expired' || reason === 'Gone') return 'Gone'
  if (reason === 'Timeout') return 'Timeout'
  switch (status) {
    case 400:
    case 405:
    case 406:
    case 413:
    case 415:
      return 'BadRequest'
    case 401:
      return 'Unauthorized'
    case 403:
      return 'Forbidden'
    case 404:
      return 'NotFound'
    case 408:
    case 504:
      return 'Timeout'
    case 409:
      return 'Conflict'
    case 410:
      return 'Gone'
    case 422:
      return 'Invalid'
    case 429:
      return 'Throttled'
    default:
      return status >= 500 ? 'Unavailable' : 'Unknown'
  }
}

/**
 * The error that a Status stands for.
 * @param status HTTP status, or the Status' own code for an ERROR event of a watch.
 * @param retryAfterMs from the Retry-After header; the body's `retryAfterSeconds` is used when it is absent.
 */
export function errorFromStatus(
  status: number,
  body: Status,
  context: {
    readonly what: string
    readonly retryAfterMs?: number | undefined
    readonly ambiguous?: boolean
  },
): KubeError {
  const fromBody = body.details?.retryAfterSeconds
  // A PATCH that names another uid fails its precondition, but the server reports it as an attempt to change the uid.
  const otherUid = status === 422 && body.details?.causes?.some(cause => cause.field === 'metadata.uid')
  return new KubeError(
    otherUid ? 'Conflict' : codeOf(status, body.reason),
    `${context.what}: ${body.message ?? `HTTP ${status}`}`,
    {
      status,
      reason: body.reason,
      details: body.details,
      retryAfterMs: context.retryAfterMs ?? (fromBody === undefined ? undefined : fromBody * 1000),
      ambiguous: context.ambiguous,
    },
  )
}

/** Returns the message of an error, or the text of any other thrown value. */
export const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error))
