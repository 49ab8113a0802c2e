/** Sends writes only while they are allowed, a guarantee that a lease alone cannot give. */
import type { Api, CallOptions } from './api-types.ts'
import { KubeError } from './errors.ts'

/**
 * Returns the same client, whose writes call `mayWrite` right before each try. With an elector's `isLeader`, which
 * reads the clock, a process that was held up (a long computation, a stopped machine) sends nothing after the end of
 * its term, even if no timer has fired yet. Reads are not restricted.
 */
export function fenced(api: Api, mayWrite: () => boolean): Api {
  const permit = () => {
    if (!mayWrite()) throw new KubeError('Aborted', 'not sent: this process is no longer the leader')
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
