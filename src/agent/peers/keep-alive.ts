import type { Http2Session } from 'node:http2'
import type { Clock } from '../../kube/clock.ts'

/**
 * Pings the other end at intervals while the session is open, and destroys the session if an answer does not arrive in
 * time. The kernel alone takes many minutes to notice that a machine it sent data to is gone.
 */
export function keepAlive(
  session: Http2Session,
  {
    clock,
    everyMs = 5_000,
    patienceMs = 10_000,
  }: { readonly clock: Clock; readonly everyMs?: number; readonly patienceMs?: number },
): void {
  const over = new AbortController()
  session.once('close', () => over.abort())
  const ask = async () => {
    for (;;) {
      await clock.sleep(everyMs, over.signal)
      const answered = Promise.withResolvers<'answered'>()
      if (!session.ping(error => (error ? undefined : answered.resolve('answered')))) continue
      const waiting = new AbortController()
      const late = clock.sleep(patienceMs, waiting.signal).then(
        () => 'late' as const,
        () => 'answered' as const,
      )
      const closed = new Promise<'closed'>(resolve => {
        over.signal.addEventListener('abort', () => resolve('closed'), { once: true, signal: waiting.signal })
      })
      const outcome = await Promise.race([answered.promise, late, closed])
      waiting.abort()
      if (outcome === 'closed') return
      if (outcome === 'late') {
        session.destroy(new Error(`no answer to pings for ${patienceMs} ms`))
        return
      }
    }
  }
  ask().catch(() => {
    // The session is closed.
  })
}
