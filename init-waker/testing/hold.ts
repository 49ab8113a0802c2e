import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect } from 'vitest'
import { eventually } from '../../test/support/eventually.ts'
import { connect, exchange } from './peer.ts'
import { orDispose, type Started, type StartOptions, start, statusField } from './process.ts'

export interface Hold extends Started {
  readonly socket: string
  /** Gives an order and resolves with the word and the number of the reply. */
  order(text: string, payload?: string): Promise<string>
}

/** Returns the prefix of an order to the hold of that directory. */
export const orderHead = (directory: string): string =>
  `understudy/2 ${readFileSync(join(directory, 'hold.key'), 'latin1')} `

export interface HoldOptions extends StartOptions {
  /** The directory of the order socket; a new directory if not given. */
  readonly directory?: string
  /** Options before the command. */
  readonly options?: readonly string[]
}

/** Starts a `hold` that takes orders. */
export async function startHold(
  waker: string,
  command: readonly string[],
  options: HoldOptions = {},
): Promise<Hold> {
  const directory = options.directory ?? mkdtempSync(join(tmpdir(), 'hold-'))
  const socket = join(directory, 'hold.sock')
  const args = ['hold', '--dir', directory, ...(options.options ?? []), '--', ...command]
  const started = await start(waker, args, options)
  const order = async (text: string, payload = '') => {
    const reply = await exchange({ path: socket }, `${orderHead(directory)}${text}\n${payload}`)
    expect(reply).toMatch(/^understudy\/1 [a-z]+ \d+ \d{19}\n$/)
    return reply.split(' ').slice(1, 3).join(' ')
  }
  const hold: Hold = {
    ...started,
    socket,
    order,
    async [Symbol.asyncDispose]() {
      await started[Symbol.asyncDispose]()
      if (options.directory === undefined) rmSync(directory, { recursive: true, force: true })
    },
  }
  await orDispose(
    hold,
    eventually(async () => {
      ;(await connect({ path: socket })).socket.destroy()
      orderHead(directory)
    }),
  )
  return hold
}

/** Resolves when `hold` has blocked its signals; without orders nothing else shows its progress. */
export async function untilHolding(hold: Started): Promise<void> {
  await eventually(() => expect(statusField(hold.pid, 'SigBlk')).toMatch(/^f{6}/))
}
