/** A client of an API server in memory, for the tests of an operator. */
import { unlessAborted } from '../abort.ts'
import type { Api, CallOptions, WatchEvent, WatchQuery } from '../api-types.ts'
import { isKubeError, KubeError } from '../errors.ts'
import type { KubeObject, ObjectRef } from '../object.ts'
import { type Resource, resourceName } from '../resources.ts'
import { selectorOf } from '../selector.ts'
import type { ApiServer } from './api-server.ts'
import { inOrder, visible } from './selection.ts'

/** One call, for faults. */
export interface MemoryCall {
  readonly verb: 'get' | 'list' | 'create' | 'patch' | 'update' | 'delete' | 'watch'
  /** Its `resourceName`. */
  readonly resource: string
  readonly name: string | undefined
}

export interface Faults {
  /** Before the server executes the call. May wait; if it throws, the call is not executed. */
  readonly send?: ((call: MemoryCall) => Promise<void> | void) | undefined
  /** Before the answer comes back. If it throws, the call was executed all the same. */
  readonly reply?: ((call: MemoryCall) => Promise<void> | void) | undefined
}

/**
 * Returns a client of the server: calls are instantaneous unless `faults` makes them wait or fail. Patches of type
 * `apply` create the object or are merged into it, and no field has an owner; there are no patches of type `json`.
 */
export function createMemoryApi(server: ApiServer, faults: Faults = {}): Api {
  const closed = new AbortController()
  const waiting = new Set<() => void>()
  server.subscribe(() => {
    const wakes = [...waiting]
    waiting.clear()
    for (const wake of wakes) wake()
  })

  const call = <T>(about: MemoryCall, options: CallOptions | undefined, run: () => T): Promise<T> => {
    const execute = async (signal: AbortSignal) => {
      await faults.send?.(about)
      signal.throwIfAborted()
      options?.permit?.()
      const answer = run()
      await faults.reply?.(about)
      // The server's objects never change, but a caller must not share nested values of its own body with it.
      return structuredClone(answer)
    }
    return until(about, [closed.signal, options?.signal], execute)
  }
  const about = (verb: MemoryCall['verb'], resource: Resource<KubeObject>, name?: string): MemoryCall => ({
    ...{ verb, resource: resourceName(resource), name },
  })

  const apply = <T extends KubeObject>(resource: Resource<T>, ref: ObjectRef, body: unknown): T => {
    if (server.find(resource, ref)) return server.patch(resource, ref, 'merge', body, undefined)
    const { metadata, ...rest } = body as { readonly metadata?: object }
    return server.create(resource, { ...rest, metadata: { ...metadata, name: ref.name } }, ref.namespace)
  }

  async function* watch<T extends KubeObject>(
    resource: Resource<T>,
    query: WatchQuery,
    options: CallOptions | undefined,
  ): AsyncGenerator<WatchEvent<T>> {
    const selects = selectorOf(query)
    const history = server.history(resource)
    const first = await call(about('watch', resource), options, () => ({
      objects: inOrder(server.list(resource).filter(selects)),
      version: server.version,
      length: history.length,
    }))
    const seenBefore = Number(query.resourceVersion ?? 0)
    let at = query.sendInitialEvents
      ? first.length
      : history.filter(({ version }) => version <= seenBefore).length
    if (query.sendInitialEvents) {
      for (const object of first.objects) yield { type: 'ADDED', object }
      yield { type: 'BOOKMARK', resourceVersion: String(first.version), initialEventsEnd: true }
    }
    for (;;) {
      const event = history[at]
      if (event === undefined) {
        const change = () => new Promise<void>(resolve => waiting.add(resolve))
        await until(about('watch', resource), [closed.signal, options?.signal], change)
        continue
      }
      at += 1
      const seen = visible<T>(event, selects)
      if (seen) yield seen
    }
  }

  return {
    get: (resource, ref, options) =>
      call(about('get', resource, ref.name), options, () => server.get(resource, ref)),
    list: (resource, query, options) =>
      call(about('list', resource), options, () => ({
        metadata: { resourceVersion: String(server.version) },
        items: inOrder(server.list(resource).filter(selectorOf(query))),
      })),
    create: (resource, body, options) =>
      call(about('create', resource), options, () => server.create(resource, body, options?.namespace)),
    patch: (resource, ref, { type, body }, options) =>
      call(about('patch', resource, ref.name), options, () => {
        if (type === 'json') throw new TypeError('the API in memory has no patches of type json')
        if (type === 'apply') return apply(resource, ref, body)
        return server.patch(resource, ref, type, body, options?.subresource)
      }),
    replace: (resource, ref, body, options) =>
      call(about('update', resource, ref.name), options, () =>
        server.replace(resource, ref, body, options?.subresource),
      ),
    delete: (resource, ref, query = {}, options) =>
      call(about('delete', resource, ref.name), options, () =>
        server.delete(resource, ref, query, query.gracePeriodSeconds),
      ),
    watch,
    request: async () => ({ status: 200, body: {} }),
    close: async () => closed.abort(new Error('the client is closed')),
  }
}

/** Runs a call until it ends or a signal fires. @throws KubeError Aborted when a signal has fired. */
async function until<T>(
  { verb, resource }: MemoryCall,
  signals: readonly (AbortSignal | undefined)[],
  run: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  // The signals of a test live as long as the test.
  const signal = AbortSignal.any(signals.filter(each => each !== undefined))
  try {
    return await unlessAborted(run(signal), signal)
  } catch (error) {
    if (isKubeError(error) || !signal.aborted) throw error
    throw new KubeError('Aborted', `${verb} ${resource}`, { cause: error })
  }
}
