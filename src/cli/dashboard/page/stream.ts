/** The messages of the program, heard over one request that does not end. */
import type { Message } from '../wire.ts'

export interface Listener {
  message(message: Message): void
  /** The program does not answer. The page asks it again. */
  lost(): void
  /** The program refuses the key of this page, which does not change. */
  refused(why: string): void
}

const retryAfterMs = 1_000

/**
 * Hears the program while the tab is on the screen. A browser has few connections to one program: tabs in the background would keep
 * them from the tab that is looked at.
 *
 * @param silentMs a request that brings nothing for so long is dead
 */
export async function hear(key: string, silentMs: number, listener: Listener): Promise<void> {
  for (;;) {
    await visible()
    const over = new AbortController()
    const hide = () => {
      if (document.hidden) over.abort()
    }
    document.addEventListener('visibilitychange', hide)
    let patience = setTimeout(() => over.abort(), silentMs)
    try {
      const headers = { authorization: `Bearer ${key}` }
      const response = await fetch('/events', { headers, signal: over.signal })
      if (response.status === 403) return listener.refused(await response.text())
      for await (const line of linesOf(response)) {
        clearTimeout(patience)
        patience = setTimeout(() => over.abort(), silentMs)
        // The program is of the same version, and sends nothing else.
        listener.message(JSON.parse(line) as Message)
      }
    } catch (error) {
      // The network has one kind of error for everything. An error of our own is a bug, and the console shows it.
      if (!over.signal.aborted && !(error instanceof TypeError)) reportError(error)
    } finally {
      clearTimeout(patience)
      document.removeEventListener('visibilitychange', hide)
      over.abort()
    }
    if (document.hidden) continue
    listener.lost()
    await new Promise(resolve => setTimeout(resolve, retryAfterMs))
  }
}

async function visible(): Promise<void> {
  while (document.hidden)
    await new Promise(resolve => document.addEventListener('visibilitychange', resolve, { once: true }))
}

async function* linesOf({ body }: Response): AsyncGenerator<string> {
  if (body === null) return
  const reader = body.pipeThrough(new TextDecoderStream()).getReader()
  let parts: string[] = []
  for (;;) {
    const { done, value } = await reader.read()
    if (done) return
    const pieces = value.split('\n')
    for (const piece of pieces.slice(0, -1)) {
      yield parts.join('') + piece
      parts = []
    }
    parts.push(pieces.at(-1) ?? '')
  }
}
