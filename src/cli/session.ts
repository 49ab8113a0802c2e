import type { Command } from 'commander'
import { type Api, createApi } from '../kube/api.ts'
import type { CallOptions } from '../kube/api-types.ts'
import { type Clock, systemClock } from '../kube/clock.ts'
import { loadConnection } from '../kube/connection.ts'
import { type Random, systemRandom } from '../kube/random.ts'
import { type Progress, silent } from '../terminal/progress.ts'
import { CliError, exitCodes } from './failure.ts'
import { isData, type Output } from './output/answer.ts'
import type { ColourChoice, Terminal } from './terminal.ts'

/** Options of every command. */
export interface CommonOptions {
  readonly kubeconfig?: string
  readonly context?: string
  readonly namespace?: string
  readonly output?: Output
  readonly color?: ColourChoice
  /** Seconds; 0: no limit. */
  readonly requestTimeout?: number
  /** User to impersonate, and its groups. */
  readonly as?: string
  readonly asGroup?: readonly string[]
}

/** The environment of every command. */
export interface Session {
  readonly api: Api
  /** URL of the API server. */
  readonly server: string
  /** From the command line, else from the context, else `default`. */
  readonly namespace: string
  readonly output: Output
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

/** Runs a command with a session. A command that returns no exit code is done when it resolves. */
export type Perform = (
  command: Command,
  act: (session: Session) => Promise<void> | Promise<number | undefined>,
) => Promise<void>

const requestTimeoutMs = 10_000
/** Milliseconds of a request without limit: as long as timers can. */
const unlimitedMs = 2 ** 31 - 1

/** @throws Error naming the kubeconfig and the problem. Nothing is sent yet. */
export async function openSession(
  options: CommonOptions,
  { terminal, version, signal }: Pick<Session, 'terminal' | 'version' | 'signal'>,
): Promise<Session> {
  const {
    kubeconfig,
    context,
    namespace,
    output = 'text',
    requestTimeout,
    as: user,
    asGroup: groups,
  } = options
  if (user === undefined && groups !== undefined)
    throw new CliError('--as-group needs --as', { exitCode: exitCodes.usage })
  const impersonate = user === undefined ? undefined : { user, groups: groups ?? [] }
  const connection = await loadConnection({ kubeconfig, context, impersonate })
  return {
    api: createApi({ connection, userAgent: `kubectl-understudy/${version}`, connections: 8 }),
    server: connection.server,
    namespace: namespace ?? connection.namespace ?? 'default',
    output,
    version,
    terminal,
    progress: isData(output) ? silent : terminal.progress,
    clock: systemClock,
    random: systemRandom,
    signal,
    call: { signal, timeoutMs: timeoutOf(requestTimeout) },
  }
}

const timeoutOf = (seconds: number | undefined): number =>
  seconds === undefined
    ? requestTimeoutMs
    : seconds === 0
      ? unlimitedMs
      : Math.min(seconds * 1000, unlimitedMs)
