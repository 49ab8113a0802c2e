import { readFile } from 'node:fs/promises'
import { CommandError, lastLines } from './exec.ts'

/** A failure that the user can fix: the message says what happened; `logPath` and `advice` help to fix it. */
export class PlaygroundError extends Error {
  override readonly name = 'PlaygroundError'
  readonly advice: string | undefined
  readonly logPath: string | undefined

  constructor(message: string, options: { advice?: string; logPath?: string; cause?: unknown } = {}) {
    super(message, { cause: options.cause })
    this.advice = options.advice
    this.logPath = options.logPath
  }
}

/** Returns text for a terminal: the message, the end of the related log, and the advice. */
export async function explain(error: unknown): Promise<string> {
  if (!(error instanceof Error)) return String(error)
  const lines = [error.message]
  const logPath = logPathOf(error)
  if (logPath !== undefined) {
    const log = await readFile(logPath, 'utf8').catch(() => undefined)
    // The message of a failed command already contains the end of its log.
    const isSaid = error instanceof CommandError || error.cause instanceof CommandError
    if (log !== undefined && !isSaid) lines.push(indent(lastLines(log, 15)))
    lines.push(`log: ${logPath}`)
  }
  for (let cause = error.cause; cause instanceof Error; cause = cause.cause)
    lines.push(`because: ${cause.message}`)
  if (error instanceof PlaygroundError && error.advice !== undefined)
    lines.push(`what to do: ${error.advice}`)
  return lines.join('\n')
}

function logPathOf(error: Error): string | undefined {
  if (error instanceof PlaygroundError) return error.logPath
  if (error instanceof CommandError) return error.logFile
  return undefined
}

function indent(text: string): string {
  return text.replace(/^/gm, '  | ')
}
