/** Writes only while they are allowed: what a lease alone cannot promise. */
import type { Api, CallOptions } from './api-types.ts'
import { KubeError } from './errors.ts'

/**
 * The same client, whose writes ask `mayWrite` right before each try is sent. With an elector's `isLeader`, which asks
 * the clock, a process that was held up (a long computation, a stopped machine) sends nothing after the end of its term,
 * although no timer has told it yet. Reads go on.
 */
export function fenced(api: Api, mayWrite: () => boolean): Api {
  const permit = () => {
    if (!mayWrite()) throw new KubeError('Aborted', 'not sent: this process does not lead any more')
  }
  const guarded = <O extends CallOptions>(options: O | undefined) => ({ ...options, permit }) as O
  return {
    ...api,
    create: (resource, body, options) => api.create(resource, body, guarded(options)),
    patch: (resource, ref, patch, options) => api.patch(resource, ref, patch, guarded(options)),
    replace: (resource, ref, body, options) => api.replace(resource, ref, body, guarded(options)),
    delete: (resource, ref, query, options) => api.delete(resource, ref, query, guarded(options)),
    request: (method, path, options) =>
      api.request(method, path, method === 'GET' ? options : guarded(options)),
  }
}
