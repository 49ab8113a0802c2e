import { isKubeError } from '../../src/kube/errors.ts'

/**
 * Returns false if the API server does not answer: another fault of the round keeps it away.
 *
 * @param isFine errors that count as an answer, such as those to a request whose first answer was lost
 * @throws KubeError, all others
 */
export async function answered(
  ask: () => Promise<unknown>,
  isFine: (error: unknown) => boolean = () => false,
): Promise<boolean> {
  try {
    await ask()
    return true
  } catch (error) {
    if (isFine(error)) return true
    if (isKubeError(error, 'Throttled', 'Unavailable', 'Timeout', 'Unknown')) return false
    throw error
  }
}
