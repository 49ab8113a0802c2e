/**
 * One encoding for all who ask for the same difference at about the same time: reading, comparing and compressing it is
 * most of what a refresh costs its node, and a slot has several holders.
 */
import { unlessAborted } from '../../kube/abort.ts'
import type { Clock } from '../../kube/clock.ts'
import type { Encode } from './codec.ts'

/** How far the fastest reader may be ahead of the slowest, bytes; and for how long the beginning is there for one more. */
const windowBytes = 8 * 1024 * 1024
/** How long a reader may make the others wait: this, ms, and a quarter of the time that has passed. */
const patienceMs = 500

/** Others would have had to wait for this reader for too long. It asks again, and then it has an encoding of its own. */
export class LeftBehind extends Error {}

interface Reader {
  /** Number of the chunk that it takes next. */
  at: number
  /** For how long it has made the others wait. */
  heldUpMs: number
}

interface Shared {
  /** Whether the beginning is still there. */
  mayJoin(): boolean
  read(signal: AbortSignal | undefined): AsyncGenerator<Buffer>
}

/** An encoding ends when its last reader does. @throws LeftBehind to a reader, what `encode` throws to all of them. */
export function shareEncoding(encode: Encode, clock: Clock): Encode {
  const running = new Map<string, Shared>()
  return async function* (base, next, { signal } = {}) {
    // No two generations of a store ever lie at one place.
    const key = JSON.stringify([base?.dir, next.dir])
    let shared = running.get(key)
    if (!shared?.mayJoin()) {
      const stop = new AbortController()
      const chunks = encode(base, next, { signal: stop.signal })[Symbol.asyncIterator]()
      const created = share(chunks, clock, () => {
        if (running.get(key) === created) running.delete(key)
        stop.abort(new Error('nobody reads any more'))
      })
      running.set(key, created)
      shared = created
    }
    yield* shared.read(signal)
  }
}

function share(source: AsyncIterator<Buffer>, clock: Clock, onUnread: () => void): Shared {
  const start = clock.monotonic()
  const readers = new Set<Reader>()
  const chunks: Buffer[] = []
  /** Number of the first one that is still there. */
  let first = 0
  let bytes = 0
  let end: { readonly failure?: unknown } | undefined
  let pulling: Promise<void> | undefined
  let moved = Promise.withResolvers<void>()

  /** Somebody has taken a chunk, or has gone. */
  const onMove = () => {
    const slowest = Math.min(...[...readers].map(({ at }) => at))
    for (; bytes > windowBytes && first < slowest; first += 1) bytes -= chunks.shift()?.length ?? 0
    moved.resolve()
    moved = Promise.withResolvers()
  }

  /** Room in the window: made by those who are behind, or without them. */
  const room = async () => {
    while (bytes > windowBytes) {
      const began = clock.monotonic()
      const mayWaitMs = patienceMs + (began - start) / 4
      const behind = [...readers].filter(({ at }) => at === first)
      const leftMs = mayWaitMs - Math.max(...behind.map(({ heldUpMs }) => heldUpMs))
      if (leftMs > 0) {
        const timer = new AbortController()
        await Promise.race([moved.promise, clock.sleep(leftMs, timer.signal).catch(() => undefined)])
        timer.abort()
        for (const reader of behind) reader.heldUpMs += clock.monotonic() - began
      } else {
        for (const reader of behind) if (reader.heldUpMs >= mayWaitMs) readers.delete(reader)
        onMove()
      }
    }
  }

  /** Never rejects: a failure is for all, whoever pulls. */
  const pull = async () => {
    try {
      await room()
      const { done, value } = await source.next()
      if (done === true) end = {}
      else {
        chunks.push(value)
        bytes += value.length
      }
    } catch (failure) {
      end = { failure }
    } finally {
      pulling = undefined
    }
  }

  const take = async (reader: Reader, signal: AbortSignal | undefined): Promise<Buffer | undefined> => {
    for (;;) {
      signal?.throwIfAborted()
      if (!readers.has(reader)) throw new LeftBehind('others would have had to wait for this receiver')
      const chunk = chunks[reader.at - first]
      if (chunk !== undefined) return chunk
      if (end !== undefined && 'failure' in end) throw end.failure
      if (end !== undefined) return undefined
      pulling ??= pull()
      await unlessAborted(pulling, signal)
    }
  }

  return {
    mayJoin: () => first === 0 && readers.size > 0,
    async *read(signal) {
      const reader: Reader = { at: 0, heldUpMs: 0 }
      readers.add(reader)
      try {
        for (;;) {
          const chunk = await take(reader, signal)
          if (chunk === undefined) return
          yield chunk
          reader.at += 1
          onMove()
        }
      } finally {
        readers.delete(reader)
        onMove()
        if (readers.size === 0) {
          onUnread()
          // Not waited for: it may hang in a read that will not end.
          source.return?.().catch(() => undefined)
        }
      }
    },
  }
}
