import { createConnection } from 'node:net'
import { type Clock, systemClock } from '../../kube/clock.ts'

export interface ReachRequest {
  /** Address of the pod. */
  readonly host: string
  readonly port: number
  readonly timeoutMs: number
  readonly signal: AbortSignal
  readonly clock?: Clock
}

/**
 * Connects and sends nothing: a gate ignores that and stays closed.
 * @returns why it failed; undefined: a process listens there. @throws the signal's reason.
 */
export async function reach({
  host,
  port,
  timeoutMs,
  signal,
  clock = systemClock,
}: ReachRequest): Promise<string | undefined> {
  signal.throwIfAborted()
  const socket = createConnection({ host, port })
  const over = new AbortController()
  const end = () => over.abort()
  signal.addEventListener('abort', end, { once: true })
  try {
    return await Promise.race([
      new Promise<string | undefined>(resolve => {
        socket.on('error', error => resolve(error.message))
        socket.on('connect', () => resolve(undefined))
      }),
      clock.sleep(timeoutMs, over.signal).then(
        () => `no answer within ${timeoutMs} ms`,
        () => 'the check was cancelled',
      ),
    ])
  } finally {
    signal.removeEventListener('abort', end)
    over.abort()
    socket.destroy()
    signal.throwIfAborted()
  }
}
