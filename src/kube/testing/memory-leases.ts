/** One Lease as the API server keeps it, reached through connections that can be slow, broken or dead. */
import type { Api, CallOptions } from '../api-types.ts'
import type { Clock } from '../clock.ts'
import { KubeError } from '../errors.ts'
import type { KubeObject } from '../object.ts'
import type { Lease } from '../resources.ts'
import { fakeApi, makeObject } from './fake-api.ts'

/** Faults of a request in transit. Both functions may wait or throw; the caller's timeout runs meanwhile. */
export interface Faults {
  /** Before the request reaches the server. If it throws, the request is not executed. */
  send?(verb: string): Promise<void> | void
  /** Before the answer comes back. If it throws, the request was executed all the same. */
  reply?(verb: string): Promise<void> | void
}

export function createMemoryLeases(clock: Clock) {
  let stored: Lease | undefined
  let version = 100
  let uids = 0

  const put = (lease: KubeObject, uid: string): Lease => {
    const before = stored && { ...stored.metadata, resourceVersion: '' }
    const after = { ...(lease as Lease), metadata: { ...lease.metadata, uid, resourceVersion: '' } }
    // Like the real server: a write that changes nothing makes no new version.
    if (before && stored && JSON.stringify({ ...stored, metadata: before }) === JSON.stringify(after))
      return stored
    stored = { ...after, metadata: { ...after.metadata, resourceVersion: String(++version) } }
    return stored
  }

  const execute = (verb: string, body?: KubeObject): Lease => {
    switch (verb) {
      case 'get':
        if (!stored) throw new KubeError('NotFound', 'leases "x" not found')
        return stored
      case 'create':
        if (stored) throw new KubeError('AlreadyExists', 'leases "x" already exists')
        return put(body as KubeObject, `uid-${++uids}`)
      default: {
        const { uid, resourceVersion } = (body as KubeObject).metadata
        if (!stored) throw new KubeError('NotFound', 'leases "x" not found')
        if (stored.metadata.uid !== uid || stored.metadata.resourceVersion !== resourceVersion)
          throw new KubeError('Conflict', 'the object has been modified')
        return put(body as KubeObject, uid)
      }
    }
  }

  const call = async (verb: string, faults: Faults, options: CallOptions = {}, body?: unknown) => {
    const { timeoutMs = 30_000, signal } = options
    if (signal?.aborted) throw new KubeError('Aborted', 'aborted', { cause: signal.reason })
    const settled = new AbortController()
    const request = async () => {
      await faults.send?.(verb)
      const answer = execute(verb, structuredClone(body) as KubeObject)
      await faults.reply?.(verb)
      return structuredClone(answer)
    }
    const timeout = clock.sleep(timeoutMs, settled.signal).then(() => {
      throw new KubeError('Timeout', `${verb} took too long`, { ambiguous: verb !== 'get' })
    })
    timeout.catch(() => {})
    const aborted = new Promise<never>((_, reject) => {
      signal?.addEventListener(
        'abort',
        () => reject(new KubeError('Aborted', 'aborted', { cause: signal.reason })),
        { signal: settled.signal },
      )
    })
    const outcome = request()
    outcome.catch(() => {})
    try {
      return await Promise.race([outcome, timeout, aborted])
    } finally {
      settled.abort()
    }
  }

  return {
    /** Opens a separate connection; `faults` may be changed at any time. */
    client: (faults: Faults = {}): Api =>
      fakeApi({
        get: (_resource, _ref, options) => call('get', faults, options),
        create: (_resource, body, options) => call('create', faults, options, body),
        replace: (_resource, _ref, body, options) => call('replace', faults, options, body),
      }),
    get: () => stored,
    /** Changes the Lease as `kubectl edit` does. */
    edit(change: (lease: Lease) => Lease) {
      if (stored) put(change(stored), stored.metadata.uid)
    },
    /** Replaces the Lease, as `kubectl apply` of a Lease made elsewhere does. */
    set(spec: NonNullable<Lease['spec']>) {
      put(makeObject({ metadata: { namespace: 'ns' }, spec }), stored?.metadata.uid ?? `uid-${++uids}`)
    },
    remove() {
      stored = undefined
    },
  }
}
