import { parseLogLine } from './operator-log.ts'

/**
 * Returns when a gate opened, by its own clock (Unix ms with ns in the fraction), or undefined if its log does not say.
 */
export function wokenAt(log: string): number | undefined {
  for (const text of log.split('\n')) {
    const line = parseLogLine(text)
    if (line?.['msg'] === 'woken' && typeof line['at'] === 'string')
      return Number(BigInt(line['at']) / 1000n) / 1000
  }
  return undefined
}
