import { type Api, createApi } from '../kube/api.ts'
import type { CallOptions } from '../kube/api-types.ts'
import { type Clock, systemClock } from '../kube/clock.ts'
import { loadConnection } from '../kube/connection.ts'
import { type Random, systemRandom } from '../kube/random.ts'
import { type Progress, silent } from '../terminal/progress.ts'
import type { Terminal } from './terminal.ts'

/** Options of every command. */
export interface CommonOptions {
  readonly kubeconfig?: string
  readonly context?: string
  readonly namespace?: string
  readonly output?: 'wide' | 'json'
}

/** The environment of every command. */
export interface Session {
  readonly api: Api
  /** URL of the API server. */
  readonly server: string
  /** From the command line, else from the context, else `default`. */
  readonly namespace: string
  readonly output: 'text' | 'wide' | 'json'
  readonly version: string
  readonly terminal: Terminal
  /** Shows the phases of the command to the user. Silent if a program reads the output. */
  readonly progress: Progress
  readonly clock: Clock
  readonly random: Random
  /** Fires at Ctrl-C. */
  readonly signal: AbortSignal
  /** Options of every single request. The timeout is short because a person waits. */
  readonly call: CallOptions
}

const requestTimeoutMs = 10_000

/** @throws Error naming the kubeconfig and the problem. Nothing is sent yet. */
export async function openSession(
  { kubeconfig, context, namespace, output }: CommonOptions,
  { terminal, version, signal }: Pick<Session, 'terminal' | 'version' | 'signal'>,
): Promise<Session> {
  const connection = await loadConnection({ kubeconfig, context })
  return {
    api: createApi({ connection, userAgent: `kubectl-understudy/${version}`, connections: 8 }),
    server: connection.server,
    namespace: namespace ?? connection.namespace ?? 'default',
    output: output ?? 'text',
    version,
    terminal,
    progress: output === 'json' ? silent : terminal.progress,
    clock: systemClock,
    random: systemRandom,
    signal,
    call: { signal, timeoutMs: requestTimeoutMs },
  }
}
