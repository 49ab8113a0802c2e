import { nodeReports, silencesAnnotation } from '../../api/node-report.ts'
import { isKubeError } from '../../kube/errors.ts'
import type { SlotActionOf } from '../decide/actions.ts'
import type { SlotPort } from './context.ts'

/**
 * Makes the statement of the API server that the primaries of a node are silent: it counts no further write of that
 * agent as an answer to their present voters. If the agent has written since the report was read, there is no
 * statement, and the next pass sees that it lives.
 *
 * @throws KubeError, but no Conflict.
 */
export async function stateSilence(
  { urgentApi, signal }: Pick<SlotPort, 'urgentApi' | 'signal'>,
  { node, report, silences }: SlotActionOf<'stateSilence'>,
): Promise<void> {
  const annotations = { [silencesAnnotation]: String(silences) }
  const body = { metadata: { ...report, annotations } }
  try {
    await urgentApi.patch(nodeReports, { name: node }, { type: 'merge', body }, { signal })
  } catch (error) {
    if (!isKubeError(error, 'Conflict', 'NotFound')) throw error
  }
}
