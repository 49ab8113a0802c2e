import { type NodeReport, nodeReports, parseReport } from '../../api/node-report.ts'
import type { Api } from '../../kube/api.ts'
import { isKubeError } from '../../kube/errors.ts'

/**
 * Reads a node's report from the API server, bypassing our cache; undefined if it does not exist. @throws KubeError.
 */
export async function readReport(
  api: Pick<Api, 'get'>,
  name: string,
  signal: AbortSignal,
): Promise<NodeReport | undefined> {
  try {
    return parseReport(await api.get(nodeReports, { name }, { signal }))
  } catch (error) {
    if (isKubeError(error, 'NotFound')) return undefined
    throw error
  }
}
