import { inject } from 'vitest'

/** Path of the administrator's kubeconfig of the API server that this file has to itself for as long as it runs. */
export function adminKubeconfig(): string {
  const path = inject('kubeconfigs')[Number(process.env['VITEST_POOL_ID']) - 1]
  if (path === undefined) throw new Error(`no API server for worker ${process.env['VITEST_POOL_ID']}`)
  return path
}
