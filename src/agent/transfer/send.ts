/** Sends one generation: retains it while it is read; the receiver sets the pace. */
import type { ServerHttp2Stream } from 'node:http2'
import { pipeline } from 'node:stream/promises'
import { isNewer } from '../../checkpoint/manifest.ts'
import type { GenerationStore, Stored } from '../../checkpoint/store.ts'
import type { Clock } from '../../kube/clock.ts'
import type { Encode } from './codec.ts'
import { formatHead, type GenerationRequest, versionOf } from './protocol.ts'
import { createWatchdog } from './watchdog.ts'

export interface SendOptions {
  readonly store: Pick<GenerationStore, 'latest' | 'open' | 'retain'>
  readonly encode: Encode
  readonly clock: Clock
  /** Milliseconds that the receiver may read nothing. */
  readonly silenceMs: number
  readonly signal: AbortSignal
}

/** Returns the generation that would answer this request now. */
export function newest(
  store: Pick<GenerationStore, 'latest'>,
  request: GenerationRequest,
): Stored | undefined {
  const stored = store.latest(request.slot)
  return stored !== undefined && isNewer(versionOf(stored.manifest), request.after) ? stored : undefined
}

/**
 * Answers with `next`, which must be in the store at the time of the call.
 * @throws the signal's reason, or the failure of encoding or sending; the stream is then reset, never ended.
 */
export async function sendGeneration(
  stream: ServerHttp2Stream,
  request: GenerationRequest,
  next: Stored,
  options: SendOptions,
): Promise<void> {
  const { store, encode, clock, silenceMs, signal } = options
  const { slot } = request
  const start = clock.monotonic()
  const letGo = [store.retain(slot, next.manifest.generation, next.manifest.epoch)]
  const stalled = new AbortController()
  const onAbort = () => stalled.abort(signal.reason)
  signal.addEventListener('abort', onAbort, { once: true })
  if (signal.aborted) onAbort()
  const watchdog = createWatchdog({
    clock,
    ms: silenceMs,
    onSilence: () => stalled.abort(new Error(`the receiver read nothing for ${silenceMs} ms`)),
  })
  try {
    const base = findBase(store, request)
    if (base !== undefined) letGo.push(store.retain(slot, base.manifest.generation, base.manifest.epoch))
    stream.respond({
      ':status': 200,
      ...formatHead({
        version: versionOf(next.manifest),
        base: base && versionOf(base.manifest),
        ageMs: start - next.completedAt + next.pipelineMs,
      }),
    })
    const chunks = async function* () {
      for await (const chunk of encode(base, next, { signal: stalled.signal })) {
        // Until the stream asks for more, the receiver is the slow side: the stream takes no more than its window.
        watchdog.watch()
        yield chunk
        watchdog.rest()
      }
      watchdog.watch()
    }
    await pipeline(chunks, stream, { signal: stalled.signal })
  } catch (error) {
    // pipeline throws an AbortError without the reason.
    throw stalled.signal.aborted ? stalled.signal.reason : error
  } finally {
    watchdog.stop()
    signal.removeEventListener('abort', onAbort)
    for (const release of letGo) release()
  }
}

function findBase(
  store: Pick<GenerationStore, 'open'>,
  { slot, base }: GenerationRequest,
): Stored | undefined {
  return base && store.open(slot, base.generation, base.epoch)
}
