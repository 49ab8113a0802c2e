import { createSocket } from 'node:dgram'

/** A peer that is only a socket: it records the beats that it gets, and answers none. */
export interface Listener extends AsyncDisposable {
  readonly port: number
  /** When the sentinel has sent them, by the monotonic clock in ns: how late the test reads them changes nothing. */
  readonly sent: readonly bigint[]
}

export async function listen(): Promise<Listener> {
  const socket = createSocket('udp4')
  await new Promise<void>(resolve => socket.bind(0, '127.0.0.1', () => resolve()))
  const sent: bigint[] = []
  socket.on('message', bytes => sent.push(bytes.readBigInt64BE(32)))
  return {
    port: socket.address().port,
    sent,
    [Symbol.asyncDispose]: () => new Promise(resolve => socket.close(() => resolve())),
  }
}
