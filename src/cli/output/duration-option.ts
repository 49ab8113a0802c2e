import { InvalidArgumentError } from 'commander'

const units: Readonly<Record<string, number>> = {
  h: 3600,
  m: 60,
  s: 1,
  ms: 0.001,
  us: 1e-6,
  µs: 1e-6,
  ns: 1e-9,
}
const mostSeconds = 1_000_000_000

/** Parses a duration as kubectl has them (`90s`, `1h30m`, `1.5m`), or a number of seconds. Returns seconds. */
export function seconds(text: string): number {
  const found = /^\d+(\.\d+)?$/.test(text) ? Number(text) : sumOf(text)
  if (found === undefined || found > mostSeconds)
    throw new InvalidArgumentError('must be a duration such as 90s, 2m or 1h30m, or a number of seconds')
  return found
}

function sumOf(text: string): number | undefined {
  if (!/^(\d+(\.\d+)?(h|ms|m|s|us|µs|ns))+$/.test(text)) return undefined
  const parts = [...text.matchAll(/([\d.]+)(h|ms|m|s|us|µs|ns)/g)]
  return parts.reduce((sum, [, count, unit]) => sum + Number(count) * (units[unit ?? ''] ?? 0), 0)
}

export function natural(text: string): number {
  if (!/^\d{1,9}$/.test(text)) throw new InvalidArgumentError('must be a whole number')
  return Number(text)
}
