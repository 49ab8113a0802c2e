/** Failures of a command: one line for the problem, one for the remedy, and an exit code. */
import { isKubeError, type KubeError, messageOf } from '../kube/errors.ts'
import { oneLine } from './terminal.ts'

export const exitCodes = {
  done: 0,
  /** Something went wrong, or `doctor` found something broken. */
  failed: 1,
  /** The command line cannot be understood. */
  usage: 2,
  /** The command would lose memory, and the user has not allowed that. */
  refused: 3,
  /** The command was begun, but did not finish within --timeout. */
  late: 4,
  interrupted: 130,
} as const
export type ExitCode = (typeof exitCodes)[keyof typeof exitCodes]

/** A failure with a message for the user. */
export class CliError extends Error {
  override readonly name = 'CliError'
  readonly exitCode: ExitCode
  /** The remedy. */
  readonly advice: string | undefined
  /** Facts below the message, one a line. */
  readonly details: readonly string[]

  constructor(
    message: string,
    {
      advice,
      exitCode = exitCodes.failed,
      details = [],
    }: {
      readonly advice?: string
      readonly exitCode?: ExitCode
      readonly details?: readonly string[]
    } = {},
  ) {
    super(message)
    this.advice = advice
    this.exitCode = exitCode
    this.details = details
  }
}

export interface Explanation {
  readonly message: string
  readonly details: readonly string[]
  readonly advice: string | undefined
  readonly exitCode: ExitCode
}

/** The message and advice that a user gets for any error. Never a stack. */
export function explain(error: unknown, server: string | undefined): Explanation {
  if (error instanceof CliError) return error
  const message = messageOf(error)
  const advice = isKubeError(error) ? adviceFor(error, server) : undefined
  return { message, details: [], advice, exitCode: exitCodes.failed }
}

/** The lines of a failure: the problem, its details, and one arrow with what to do. */
export function failureLines({ message, details, advice }: Explanation): readonly string[] {
  const most = 50
  const more = details.length - most
  return [
    `error: ${oneLine(message)}`,
    ...details.slice(0, most).map(detail => `  ${oneLine(detail)}`),
    ...(more > 0 ? [`  and ${more} more`] : []),
    ...(advice === undefined ? [] : [`  → ${oneLine(advice)}`]),
  ]
}

/** True if the server does not know the kind. If only the object is missing, the answer names it. */
export const isUnknownKind = (error: unknown): error is KubeError =>
  isKubeError(error, 'NotFound') && error.details?.name === undefined

function adviceFor(error: KubeError, server: string | undefined): string | undefined {
  switch (error.code) {
    case 'Forbidden':
      return 'ask for the ClusterRole understudy-view (to view) or edit (to change) in this namespace; `kubectl understudy doctor` lists your rights'
    case 'Unauthorized':
      return 'log in again: the API server rejects the credentials of this kubeconfig'
    case 'NotFound':
      return isUnknownKind(error)
        ? 'install Understudy (`kubectl apply -k deploy/`), or choose another --context: this cluster does not have its kinds'
        : undefined
    case 'Unavailable':
    case 'Timeout':
      return `check that ${server ?? 'the API server'} can be reached from here, and that --context is the right one`
    case 'Conflict':
      return 'try again: nothing was changed, because the object is no longer the one that was read'
    default:
      return undefined
  }
}
