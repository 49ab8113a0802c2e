/** Runs the operator inside the test's own process. */
import { pino } from 'pino'
import { runOperator } from '../../../src/operator/operator.ts'
import { defaults, type OperatorOptions } from '../../../src/operator/options.ts'
import { adminKubeconfig } from './plane.ts'

/**
 * The operator manages the sets of all namespaces; `namespace` is its own. Disposal waits for its end and throws its
 * error.
 */
export function startOperatorHere(
  namespace: string,
  options: Partial<OperatorOptions> = {},
): AsyncDisposable {
  const stop = new AbortController()
  const ended = runOperator(
    {
      ...defaults,
      namespace,
      wakerImage: 'waker',
      identity: 'test',
      kubeconfig: adminKubeconfig(),
      leaderElect: false,
      healthPort: 0,
      metricsPort: 0,
      ...options,
    },
    pino({ level: process.env['LOG'] ?? 'error' }),
    '0.0.0',
    stop.signal,
  )
  return {
    async [Symbol.asyncDispose]() {
      stop.abort(new Error('the tests are over'))
      await ended
    },
  }
}
