/**
 * The API server as typed calls. Every method throws `KubeError` (errors.ts) and nothing else.
 */
import type { Api, ApiOptions, CallOptions, Patch } from './api-types.ts'
import { openCall } from './call.ts'
import { systemClock } from './clock.ts'
import { isKubeError, KubeError, messageOf } from './errors.ts'
import { silentLog } from './log.ts'
import type { KubeObject, List } from './object.ts'
import { systemRandom } from './random.ts'
import { pathOf, type Resource, resourceName } from './resources.ts'
import { checkedStream, checkedText, createPool, type HttpRequest } from './transport.ts'
import { authorised, measured, repeating } from './transport-layers.ts'
import { watchEvents } from './watch-stream.ts'

export type * from './api-types.ts'

const defaultTimeoutMs = 30_000
const defaultIdleTimeoutMs = 90_000

const patchTypes = {
  merge: 'application/merge-patch+json',
  strategic: 'application/strategic-merge-patch+json',
  json: 'application/json-patch+json',
  // JSON is valid YAML, and the server accepts this type for every kind.
  apply: 'application/apply-patch+yaml',
} as const satisfies Record<Patch['type'], string>

type Query = Readonly<Record<string, string | number | boolean | undefined>>
type Unsigned = Omit<HttpRequest, 'signal'>

export function createApi(options: ApiOptions): Api {
  const { connection, metrics, connections = 24, onReachable } = options
  const { clock = systemClock, random = systemRandom, log = silentLog, userAgent = 'kube-kit/0' } = options
  const defaultManager = userAgent.split('/', 1)[0]
  const closed = new AbortController()

  const pool = createPool({ connection, userAgent, connections })
  const measure = { clock, host: pool.host, metrics }
  const unary = repeating(authorised(checkedText(measured(pool.unary, measure)), connection), {
    clock,
    random,
    log,
    metrics,
  })
  // The reflector decides how to continue after a failed watch, so nothing is retried here.
  const stream = (idleTimeoutMs: number) =>
    authorised(checkedStream(measured(pool.stream(idleTimeoutMs), measure)), connection)

  let isReachable = true
  const reached = (isNow: boolean) => {
    const isNews = isNow && !isReachable
    isReachable = isNow
    if (isNews) onReachable?.()
  }

  const send = async (
    request: Unsigned,
    { signal, timeoutMs = defaultTimeoutMs, permit }: CallOptions = {},
  ) => {
    const call = openCall(clock, timeoutMs, [signal, closed.signal])
    try {
      const answer = await unary({ ...request, permit, signal: call.signal }, call.deadline)
      reached(true)
      return answer
    } catch (cause) {
      const error = asKubeError(cause, request, call.signal)
      if (isKubeError(error, 'Unavailable', 'Timeout')) reached(false)
      throw error
    } finally {
      call.end()
    }
  }

  const sendForObject = async <T>(request: Unsigned, callOptions?: CallOptions): Promise<T> => {
    const { text } = await send(request, callOptions)
    try {
      return JSON.parse(text) as T
    } catch (cause) {
      throw new KubeError('Unknown', `${request.verb} ${request.subject}: the answer is not JSON`, { cause })
    }
  }

  return {
    get: (resource, ref, callOptions) =>
      sendForObject({ ...about(resource, ref), verb: 'get', method: 'GET', repeat: 'always' }, callOptions),

    async list<T extends KubeObject>(
      resource: Resource<T>,
      query: Query & { namespace?: string | undefined },
      callOptions?: CallOptions,
    ) {
      const { namespace, ...rest } = query
      const request = {
        ...about(resource, { namespace }, rest),
        verb: 'list',
        method: 'GET',
        repeat: 'always',
      } as const
      const page = await sendForObject<List<T>>(request, callOptions)
      // Some servers send an empty list as `null`.
      return page.items ? page : { ...page, items: [] }
    },

    create(
      resource,
      body,
      { namespace = metadataOf(body)?.namespace, fieldManager = defaultManager, dryRun, ...callOptions } = {},
    ) {
      const query = { fieldManager, dryRun: dryRun ? 'All' : undefined }
      return sendForObject(
        {
          ...about(resource, { namespace }, query),
          subject: subjectOf(resource, { namespace, name: metadataOf(body)?.name }),
          verb: 'create',
          method: 'POST',
          body: JSON.stringify(body),
          repeat: dryRun ? 'always' : 'refused',
        },
        callOptions,
      )
    },

    patch(
      resource,
      ref,
      patch,
      { subresource, fieldManager = defaultManager, force, dryRun, ...callOptions } = {},
    ) {
      const query = {
        fieldManager,
        force: patch.type === 'apply' && force ? true : undefined,
        dryRun: dryRun ? 'All' : undefined,
      }
      // Apply is idempotent unless the body pins a resourceVersion: the first application changes it.
      const idempotent = patch.type === 'apply' && metadataOf(patch.body)?.resourceVersion === undefined
      return sendForObject(
        {
          ...about(resource, { ...ref, subresource }, query),
          verb: 'patch',
          method: 'PATCH',
          body: JSON.stringify(patch.body),
          contentType: patchTypes[patch.type],
          repeat: idempotent || dryRun ? 'always' : 'refused',
        },
        callOptions,
      )
    },

    replace(
      resource,
      ref,
      body,
      { subresource, fieldManager = defaultManager, dryRun, ...callOptions } = {},
    ) {
      const query = { fieldManager, dryRun: dryRun ? 'All' : undefined }
      return sendForObject(
        {
          ...about(resource, { ...ref, subresource }, query),
          verb: 'update',
          method: 'PUT',
          body: JSON.stringify(body),
          repeat: dryRun ? 'always' : 'refused',
        },
        callOptions,
      )
    },

    async delete(
      resource,
      ref,
      { uid, resourceVersion, gracePeriodSeconds, propagationPolicy, dryRun } = {},
      callOptions = {},
    ) {
      const body = {
        apiVersion: 'v1',
        kind: 'DeleteOptions',
        ...(uid !== undefined || resourceVersion !== undefined
          ? { preconditions: { uid, resourceVersion } }
          : {}),
        gracePeriodSeconds,
        propagationPolicy,
        ...(dryRun ? { dryRun: ['All'] } : {}),
      }
      const request = {
        ...about(resource, ref),
        verb: 'delete',
        method: 'DELETE',
        body: JSON.stringify(body),
        // A uid is never reused, so a second delete cannot hit a successor of the same name.
        repeat: uid !== undefined || dryRun ? 'always' : 'refused',
      } as const
      await send(request, callOptions)
    },

    async *watch(
      resource,
      query,
      { signal, timeoutMs = defaultTimeoutMs, idleTimeoutMs = defaultIdleTimeoutMs } = {},
    ) {
      const { namespace, sendInitialEvents, ...rest } = query
      const params = {
        ...rest,
        watch: true,
        allowWatchBookmarks: true,
        ...(sendInitialEvents ? { sendInitialEvents, resourceVersionMatch: 'NotOlderThan' } : {}),
      }
      const request = {
        ...about(resource, { namespace }, params),
        verb: 'watch',
        method: 'GET',
        repeat: 'never',
      } as const
      const call = openCall(clock, timeoutMs, [signal, closed.signal])
      try {
        const answer = await stream(idleTimeoutMs)({ ...request, signal: call.signal })
        call.met()
        // Leaving the loop early closes the body and with it the connection.
        yield* watchEvents(answer.body, request.subject)
      } catch (error) {
        throw asKubeError(error, request, call.signal)
      } finally {
        call.end()
      }
    },

    async request(method, path, { body, contentType, query, ...callOptions } = {}) {
      const params = new URLSearchParams(query).toString()
      const request = {
        verb: 'raw',
        method,
        resource: path,
        subject: path,
        path: params === '' ? path : `${path}?${params}`,
        body: body === undefined || typeof body === 'string' ? body : JSON.stringify(body),
        contentType,
        // Nothing is known about this request, not even the meaning of its 429 (for an eviction it is a verdict).
        repeat: method === 'GET' ? 'always' : 'never',
      } as const
      const answer = await send(request, callOptions)
      const json = String(answer.headers['content-type']).includes('json')
      return { status: answer.status, body: json ? JSON.parse(answer.text) : answer.text }
    },

    async close() {
      closed.abort(new KubeError('Aborted', 'the API client is closed'))
      await pool.destroy()
    },
  }
}

/** The parts of a request that follow from its resource and target. */
function about(
  resource: Resource<KubeObject>,
  target: { namespace?: string | undefined; name?: string | undefined; subresource?: string | undefined },
  query: Query = {},
): Pick<HttpRequest, 'resource' | 'subject' | 'path'> {
  const params = new URLSearchParams()
  for (const [name, value] of Object.entries(query)) if (value !== undefined) params.set(name, String(value))
  const search = params.size === 0 ? '' : `?${params}`
  return {
    resource: resourceName(resource),
    subject: subjectOf(resource, target),
    path: pathOf(resource, target) + search,
  }
}

function subjectOf(
  resource: Resource<KubeObject>,
  { namespace, name }: { namespace?: string | undefined; name?: string | undefined },
): string {
  return [resourceName(resource), [namespace, name].filter(part => part).join('/')]
    .filter(part => part)
    .join(' ')
}

function metadataOf(
  body: unknown,
): Partial<Record<'name' | 'namespace' | 'resourceVersion', string>> | undefined {
  return (
    body as
      | { metadata?: Partial<Record<'name' | 'namespace' | 'resourceVersion', string>> }
      | null
      | undefined
  )?.metadata
}

/**
 * Converts any error to a KubeError. An error of another type normally comes from a wait that the call's signal ended.
 */
function asKubeError(error: unknown, request: Unsigned, signal: AbortSignal): KubeError {
  if (isKubeError(error) && error !== signal.reason) return error
  const what = `${request.verb} ${request.subject}`
  const text = messageOf(error)
  if (!signal.aborted) return new KubeError('Unknown', `${what}: ${text}`, { cause: error })
  return new KubeError(isKubeError(error) ? error.code : 'Aborted', `${what}: ${text}`, { cause: error })
}
