import { type NodeReport, nodeReports } from '../../api/node-report.ts'
import type { Api } from '../../kube/api.ts'
import { isKubeError } from '../../kube/errors.ts'

/** What a node reports as the API server has it now, whatever our cache shows; undefined: nothing. @throws KubeError. */
export async function readReport(
  api: Pick<Api, 'get'>,
  name: string,
  signal: AbortSignal,
): Promise<NodeReport | undefined> {
  try {
    return await api.get(nodeReports, { name }, { signal })
  } catch (error) {
    if (isKubeError(error, 'NotFound')) return undefined
    throw error
  }
}
