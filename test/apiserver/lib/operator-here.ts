/** The operator inside of the test's own process. */
import { pino } from 'pino'
import { runOperator } from '../../../src/operator/operator.ts'
import { defaults, type OperatorOptions } from '../../../src/operator/options.ts'
import { adminKubeconfig } from './plane.ts'

/** It looks after the sets of all namespaces; `namespace` is its own. Its end is waited for, and what it throws is thrown. */
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
