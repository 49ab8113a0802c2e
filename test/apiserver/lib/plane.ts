import { inject } from 'vitest'

/** Number of the worker that runs this file, from 1; unique among the running workers. */
export const worker = Number(process.env['VITEST_POOL_ID'])

/**
 * Returns the path of the administrator's kubeconfig for the API server that this file uses exclusively while it runs.
 */
export function adminKubeconfig(): string {
  const path = inject('kubeconfigs')[worker - 1]
  if (path === undefined) throw new Error(`no API server for worker ${worker}`)
  return path
}
