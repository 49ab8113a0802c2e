/** The answer of a peer to one request. */
import type { ClientHttp2Stream, IncomingHttpHeaders } from 'node:http2'
import { AgentError } from '../../api/agent-errors.ts'
import { StreamBroken } from './body.ts'
import type { Peer } from './connection.ts'
import type { Watchdog } from './watchdog.ts'

export interface Answer {
  readonly body: AsyncIterable<Buffer>
  readonly headers: IncomingHttpHeaders
  readonly watchdog: Watchdog
}

export function head(stream: ClientHttp2Stream, watchdog: Watchdog): Promise<IncomingHttpHeaders> {
  watchdog.watch()
  return new Promise((resolve, reject) => {
    stream.once('response', resolve)
    // 102: the server is still waiting, too.
    stream.on('headers', () => watchdog.watch())
    stream.on('error', error => reject(new StreamBroken(error.message, { cause: error })))
    stream.once('close', () => reject(new StreamBroken('no answer')))
  })
}

export async function* watched(
  body: AsyncIterable<Buffer>,
  watchdog: Watchdog,
): AsyncGenerator<Buffer, void> {
  watchdog.watch()
  for await (const chunk of body) {
    // While this side processes a chunk, the peer is not the slow one.
    watchdog.rest()
    yield chunk
    watchdog.watch()
  }
  watchdog.rest()
}

export function refuseUnless(fits: boolean, status: number, { address }: Peer): void {
  if (fits) return
  throw status === 403
    ? new AgentError('PeerRefused', address)
    : new AgentError('PeerMalformed', `${address}: status ${status}`)
}
