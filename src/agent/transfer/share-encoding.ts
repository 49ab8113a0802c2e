/**
 * Shares one encoding among all receivers that ask for the same difference at about the same time. Reading, comparing
 * and compressing it is most of a refresh's cost for the node, and a slot has several holders.
 */
import { unlessAborted } from '../../kube/abort.ts'
import type { Clock } from '../../kube/clock.ts'
import type { Encode } from './codec.ts'

/** Most bytes between the fastest and the slowest reader. A new reader can join until about so many have been read. */
const windowBytes = 8 * 1024 * 1024
/** How long a reader may delay the others: so many ms, plus a quarter of the time since the start. */
const patienceMs = 500

/** Thrown to a reader that delayed the others for too long. It asks again, and then gets its own encoding. */
export class LeftBehind extends Error {}

interface Reader {
  /** Number of the chunk that it reads next. */
  at: number
  /** How long it has delayed the others. */
  heldUpMs: number
}

interface Shared {
  /** True while the first chunk is still buffered. */
  mayJoin(): boolean
  read(signal: AbortSignal | undefined): AsyncGenerator<Buffer>
}

/**
 * Returns an `Encode` that shares; an encoding ends with its last reader. @throws LeftBehind to a slow reader; the
 * failure of `encode` to all readers.
 */
export function shareEncoding(encode: Encode, clock: Clock): Encode {
  const running = new Map<string, Shared>()
  return async function* (base, next, { signal } = {}) {
    // A store never uses a directory for two generations.
    const key = JSON.stringify([base?.dir, next.dir])
    let shared = running.get(key)
    if (!shared?.mayJoin()) {
      const stop = new AbortController()
      const chunks = encode(base, next, { signal: stop.signal })[Symbol.asyncIterator]()
      const created = share(chunks, clock, () => {
        if (running.get(key) === created) running.delete(key)
        stop.abort(new Error('no reader is left'))
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
  /** Number of the first buffered chunk. */
  let first = 0
  let bytes = 0
  let end: { readonly failure?: unknown } | undefined
  let pulling: Promise<void> | undefined
  let moved = Promise.withResolvers<void>()

  /** Called when a reader has taken a chunk, or has left. */
  const onMove = () => {
    const slowest = Math.min(...[...readers].map(({ at }) => at))
    for (; bytes > windowBytes && first < slowest; first += 1) bytes -= chunks.shift()?.length ?? 0
    moved.resolve()
    moved = Promise.withResolvers()
  }

  /** Waits for room in the window; removes readers that are too slow. */
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

  /** Never rejects: a failure is for all readers, not only for the reader that pulls. */
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
      if (!readers.has(reader)) throw new LeftBehind('this receiver would have held the others up')
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
          // Not awaited: it may hang in a read that never ends.
          source.return?.().catch(() => undefined)
        }
      }
    },
  }
}
