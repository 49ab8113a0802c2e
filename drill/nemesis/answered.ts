import { isKubeError } from '../../src/kube/errors.ts'
import { answeredWithinMs } from '../bounds.ts'
import { until } from '../until.ts'

type IsFine = (error: unknown) => boolean

/**
 * Returns false if the API server does not answer: another fault of the round keeps it away.
 *
 * @param isFine errors that count as an answer, such as those to a request whose first answer was lost
 * @throws KubeError, all others
 */
export async function answered(ask: () => Promise<unknown>, isFine: IsFine = () => false): Promise<boolean> {
  try {
    await ask()
    return true
  } catch (error) {
    if (isFine(error)) return true
    if (isKubeError(error, 'Throttled', 'Unavailable', 'Timeout', 'Unknown')) return false
    throw error
  }
}

/** Asks until the API server answers. @throws Error after a time that no fault lasts; KubeError, as `answered`. */
export const untilAnswered = (
  ask: () => Promise<unknown>,
  signal: AbortSignal,
  isFine?: IsFine,
): Promise<void> => until(() => answered(ask, isFine), answeredWithinMs, signal)
