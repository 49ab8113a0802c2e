import { connect } from 'node:net'
import type { TcpHandler } from './handler.ts'
import { failure, type ProbeResult, success } from './result.ts'

/**
 * Succeeds if the connection is accepted. The kernel also accepts connections for a stopped process, so the result says
 * nothing about an app that may be frozen.
 */
export function probeTcp(handler: TcpHandler, address: string, signal: AbortSignal): Promise<ProbeResult> {
  return new Promise(resolve => {
    const socket = connect({ host: address, port: handler.port, noDelay: true })
    const end = (result: ProbeResult) => {
      signal.removeEventListener('abort', onAbort)
      // Closes without a reset: an unexpected reset may kill an app, and the kubelet's probes never send one.
      socket.destroy()
      resolve(result)
    }
    const onAbort = () => end(failure('cancelled'))
    socket.once('connect', () => end(success))
    socket.on('error', error => end(failure(error.message)))
    signal.addEventListener('abort', onAbort, { once: true })
    if (signal.aborted) onAbort()
  })
}
