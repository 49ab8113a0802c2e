import { isCheckpointError } from '../../checkpoint/errors.ts'
import { isKubeError } from '../../kube/errors.ts'
import { isAgentError } from '../errors.ts'

/** An error as the reason and the message of a report. Of an unexpected one only what it is called: its text may hold anything. */
export function reasonOf(error: unknown): { readonly reason: string; readonly message: string } {
  if (isAgentError(error)) return { reason: error.code, message: `${error.message}; ${error.cure}` }
  if (isCheckpointError(error)) return { reason: error.code, message: error.message }
  if (isKubeError(error)) return { reason: `Api${error.code}`, message: error.message }
  const name = error instanceof Error ? error.name : typeof error
  return { reason: 'Unexpected', message: `${name}; the agent's log has more` }
}
