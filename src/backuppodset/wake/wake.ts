import { connect, type Socket } from 'node:net'

export interface WakeRequest {
  readonly host: string
  readonly port: number
  /** 64 hex digits, see `deriveToken`. */
  readonly token: string
  readonly kind: 'primary' | 'hotbackup'
  /** For everything: connecting, sending, the answer. */
  readonly timeoutMs: number
  readonly signal: AbortSignal
}

export type WakeReply =
  /** `atNs`: the gate's wall clock, ns. */
  | { readonly type: 'woken' | 'already'; readonly atNs: bigint }
  | {
      readonly type: 'denied' | 'malformed' | 'refused' | 'unreachable' | 'timeout' | 'garbled'
      readonly detail: string
    }

const longestReply = 128
const reply = /^understudy\/1 (woken|already|denied|malformed) (\d{1,20})$/

/** Sends the wake message to a gate. Resolves for everything that a gate or the network can do; never throws. */
export function wake({ host, port, token, kind, timeoutMs, signal }: WakeRequest): Promise<WakeReply> {
  return new Promise(resolve => {
    let heard = ''
    const socket: Socket = connect({ host, port, noDelay: true })
    const end = (outcome: WakeReply) => {
      clearTimeout(timer)
      signal.removeEventListener('abort', onAbort)
      socket.destroy()
      resolve(outcome)
    }
    const onAbort = () => end({ type: 'timeout', detail: 'given up' })
    const timer = setTimeout(
      () => end({ type: 'timeout', detail: `no answer within ${timeoutMs} ms` }),
      timeoutMs,
    )
    if (signal.aborted) return onAbort()
    signal.addEventListener('abort', onAbort, { once: true })
    socket.setEncoding('latin1')
    socket.on('connect', () => socket.write(`understudy/1 wake ${token} ${kind}\n`))
    socket.on('data', (text: string) => {
      heard += text
      const line = heard.indexOf('\n')
      if (line >= 0) end(parse(heard.slice(0, line)))
      else if (heard.length > longestReply) end({ type: 'garbled', detail: 'the answer is too long' })
    })
    socket.on('error', (error: NodeJS.ErrnoException) =>
      end(
        error.code === 'ECONNREFUSED'
          ? { type: 'refused', detail: 'nothing listens at the gate' }
          : { type: 'unreachable', detail: error.message },
      ),
    )
    socket.on('close', () => end({ type: 'garbled', detail: 'closed without a complete answer' }))
  })
}

function parse(line: string): WakeReply {
  const [, type, at = '0'] = reply.exec(line) ?? []
  switch (type) {
    case 'woken':
    case 'already':
      return { type, atNs: BigInt(at) }
    case 'denied':
    case 'malformed':
      return { type, detail: `the gate answered ${type}` }
    default:
      return { type: 'garbled', detail: 'not an answer of a gate' }
  }
}
