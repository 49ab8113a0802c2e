import { readFile } from 'node:fs/promises'
import { CommandError, lastLines } from './exec.ts'

/** Something went wrong that a person can do something about: what happened, what the log says, what to do. */
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

/** For a terminal: the message, the end of the log that belongs to it, and the advice. */
export async function explain(error: unknown): Promise<string> {
  if (!(error instanceof Error)) return String(error)
  const lines = [error.message]
  const logPath = logPathOf(error)
  if (logPath !== undefined) {
    const log = await readFile(logPath, 'utf8').catch(() => undefined)
    // A failed command's last words are in its message already.
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
