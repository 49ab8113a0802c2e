import { connect } from 'node:net'
import type { TcpHandler } from './handler.ts'
import { failure, type ProbeResult, success } from './result.ts'

/**
 * Whether somebody accepts the connection. The kernel does so for a process that is stopped, too: of an app that may be
 * frozen this says nothing.
 */
export function probeTcp(handler: TcpHandler, address: string, signal: AbortSignal): Promise<ProbeResult> {
  return new Promise(resolve => {
    const socket = connect({ host: address, port: handler.port, noDelay: true })
    const end = (result: ProbeResult) => {
      signal.removeEventListener('abort', onAbort)
      // Not reset: an app that does not expect one may die of it, and no probe of the kubelet ever sends one.
      socket.destroy()
      resolve(result)
    }
    const onAbort = () => end(failure('given up'))
    socket.once('connect', () => end(success))
    socket.on('error', error => end(failure(error.message)))
    signal.addEventListener('abort', onAbort, { once: true })
    if (signal.aborted) onAbort()
  })
}
