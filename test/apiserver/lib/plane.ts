import { inject } from 'vitest'

/** Number of the worker that runs this file, from 1: no other that runs now has the same. */
export const worker = Number(process.env['VITEST_POOL_ID'])

/** Path of the administrator's kubeconfig of the API server that this file has to itself for as long as it runs. */
export function adminKubeconfig(): string {
  const path = inject('kubeconfigs')[worker - 1]
  if (path === undefined) throw new Error(`no API server for worker ${worker}`)
  return path
}
