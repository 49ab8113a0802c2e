import type { Http2Session } from 'node:http2'
import type { Clock } from '../../kube/clock.ts'

export interface KeepAliveOptions {
  readonly clock: Clock
  /** Milliseconds between two looks at the connection. Default 1 s. */
  readonly everyMs?: number | undefined
  /** Looks in a row that find no new byte before the session is destroyed. */
  readonly looks: number
}

/** Looks in a row without a byte after which each further one sends a ping. */
const looksUntilPing = 2

/**
 * Destroys the session if the other end sends no byte and answers no ping. The kernel alone takes many minutes to
 * notice that a machine it sent data to is gone. Every byte is a sign of life: where data fills the connection, the
 * answer to a ping arrives late. The limit counts looks and not milliseconds, as a process that was itself stopped for a
 * while has heard nothing.
 */
export function keepAlive(session: Http2Session, { clock, everyMs = 1_000, looks }: KeepAliveOptions): void {
  const over = new AbortController()
  session.once('close', () => over.abort())
  const watch = async () => {
    let seen = session.socket.bytesRead
    for (let silent = 0; silent < looks; ) {
      await clock.sleep(everyMs, over.signal)
      const { bytesRead } = session.socket
      silent = bytesRead === seen ? silent + 1 : 0
      seen = bytesRead
      if (silent >= looksUntilPing) session.ping(() => undefined)
    }
    session.destroy(new Error(`no byte and no answer to pings for ${looks * everyMs} ms`))
  }
  watch().catch(() => {
    // The session is closed.
  })
}
