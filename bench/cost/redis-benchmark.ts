import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { debianProgram } from '../../build/debian-program.ts'
import { valueBytes } from '../../zoo/redis.ts'

const run = promisify(execFile)

/** p99 in seconds. */
export interface Saturated {
  readonly perSecond: number
  readonly p99: number
}

/** Runs Redis' own benchmark: 50 clients that each wait for their answers overwrite `requests` random keys. */
export async function redisBenchmark(
  host: string,
  keys: number,
  requests: number,
  signal: AbortSignal,
): Promise<Saturated> {
  const { command, args } = await debianProgram('usr/bin/redis-benchmark', 'redis')
  const work = ['-n', String(requests), '-r', String(keys), '-d', String(valueBytes), '-t', 'set', '--csv']
  const { stdout } = await run(command, [...args, '-h', host, ...work], { signal })
  return parseCsv(stdout)
}

/**
 * @param text a line of names and one of values
 * @throws Error with the actual output if it has another form
 */
export function parseCsv(text: string): Saturated {
  const [names = [], values = []] = text
    .trim()
    .split('\n')
    .slice(-2)
    .map(line => line.split(',').map(cell => cell.replaceAll('"', '')))
  const read = (name: string) => Number(values[names.indexOf(name)])
  const seen = { perSecond: read('rps'), p99: read('p99_latency_ms') / 1_000 }
  if (!Number.isFinite(seen.perSecond) || !Number.isFinite(seen.p99))
    throw new Error(`redis-benchmark printed ${text}`)
  return seen
}
