/** How a command ends when it does not end well: one line of what, one of what to do, and an exit code. */
import { isKubeError, type KubeError } from '../kube/errors.ts'

export const exitCodes = {
  done: 0,
  /** Something went wrong, or `doctor` found something broken. */
  failed: 1,
  /** The command line cannot be understood. */
  usage: 2,
  /** It would lose memory, and nobody said that it may. */
  refused: 3,
  /** It was begun and has not come to its end within --timeout. */
  late: 4,
  interrupted: 130,
} as const
export type ExitCode = (typeof exitCodes)[keyof typeof exitCodes]

/** An end that a person is told in these words. */
export class CliError extends Error {
  override readonly name = 'CliError'
  readonly exitCode: ExitCode
  /** What to do about it. */
  readonly advice: string | undefined

  constructor(
    message: string,
    { advice, exitCode = exitCodes.failed }: { readonly advice?: string; readonly exitCode?: ExitCode } = {},
  ) {
    super(message)
    this.advice = advice
    this.exitCode = exitCode
  }
}

export interface Explanation {
  readonly message: string
  readonly advice: string | undefined
  readonly exitCode: ExitCode
}

/** What a person is told of any error. Never a stack. */
export function explain(error: unknown, server: string | undefined): Explanation {
  if (error instanceof CliError) return error
  const message = error instanceof Error ? error.message : String(error)
  const advice = isKubeError(error) ? adviceFor(error, server) : undefined
  return { message, advice, exitCode: exitCodes.failed }
}

/** The server does not know the kind; an object that is not there is named in the answer. */
export const isUnknownKind = (error: unknown): error is KubeError =>
  isKubeError(error, 'NotFound') && error.details?.name === undefined

function adviceFor(error: KubeError, server: string | undefined): string | undefined {
  switch (error.code) {
    case 'Forbidden':
      return 'ask for the ClusterRole understudy-view (to look) or edit (to change) in this namespace; `kubectl understudy doctor` lists what you may do'
    case 'Unauthorized':
      return 'log in anew: the credentials of this kubeconfig are not accepted'
    case 'NotFound':
      return isUnknownKind(error)
        ? 'install Understudy (`kubectl apply -k deploy/`), or choose another --context: this cluster does not know its kinds'
        : undefined
    case 'Unavailable':
    case 'Timeout':
      return `see whether ${server ?? 'the API server'} can be reached from here, and whether --context is the one you mean`
    case 'Conflict':
      return 'nothing was changed: the object is not the one that was looked at any more; try again'
    default:
      return undefined
  }
}
