import { createHash } from 'node:crypto'
import { eventually } from '../../test/support/eventually.ts'
import { orDispose, type Started, type StartOptions, start } from './process.ts'

export const token = '0123456789abcdef'.repeat(4)
export const otherToken = 'fedcba9876543210'.repeat(4)
export const digest = createHash('sha256').update(token, 'ascii').digest('hex')

export const wakeAs = (kind: string, secret: string = token): string =>
  `understudy/1 wake ${secret} ${kind}\n`

export interface Gate extends Started {
  readonly port: number
  /** Returns the parsed lines of its log so far. */
  log(): readonly Readonly<Record<string, unknown>>[]
}

/** Starts a gate on a free port and resolves when it listens. */
export async function startGate(
  waker: string,
  args: readonly string[] = [],
  options: StartOptions = {},
): Promise<Gate> {
  const started = await start(waker, ['wait', '--port', '0', '--token-sha256', digest, ...args], options)
  const log = () =>
    started
      .stderr()
      .split('\n')
      .slice(0, -1)
      .map(line => JSON.parse(line) as Record<string, unknown>)
  const port = await orDispose(
    started,
    eventually(() => {
      const line = log().find(({ msg }) => msg === 'waiting')
      if (line === undefined) throw new Error(`not listening yet: ${started.stderr()}`)
      return Number(line['port'])
    }),
  )
  return { ...started, port, log }
}
