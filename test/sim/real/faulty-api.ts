/** The real connection to the real API server, with injected faults: see the model's `network.ts`. */
import type { Api, CallOptions, WatchEvent } from '../../../src/kube/api-types.ts'
import { KubeError } from '../../../src/kube/errors.ts'
import type { KubeObject } from '../../../src/kube/object.ts'
import { resourceName } from '../../../src/kube/resources.ts'
import type { Way } from '../model/platform.ts'
import type { VirtualTime } from '../model/virtual-time.ts'

const timeoutMs = 5_000
const lookAgainMs = 200

/** @param over ends the calls that killed processes have left open */
export function createFaultyApi(
  api: Api,
  { time, party, link, random, over }: Way & { readonly time: VirtualTime; readonly over: AbortSignal },
): Api {
  const clock = time.clockOf(party)
  /** Never resolves for a process that has ended; for a paused one, resolves when it resumes. */
  const passage = (signal: AbortSignal | undefined) => clock.sleep(0, signal)
  const eitherOf = (signal: AbortSignal | undefined) =>
    signal === undefined ? over : AbortSignal.any([signal, over])

  const call = async <T, O extends CallOptions>(
    isWrite: boolean,
    options: O | undefined,
    run: (options: O) => Promise<T>,
  ): Promise<T> => {
    const signal = eitherOf(options?.signal)
    await passage(signal)
    if (link.cut) {
      await clock.sleep(timeoutMs, signal)
      throw new KubeError('Unavailable', 'cut off')
    }
    if (random.next() < link.refusals)
      throw random.next() < 0.5
        ? new KubeError('Throttled', 'too many requests', { status: 429, retryAfterMs: 1_000 })
        : new KubeError('Unavailable', 'etcd has no leader', { status: 503 })
    // Errors are delayed like results.
    const end = await run({ ...options, signal } as O).then(
      value => () => value,
      (error: unknown) => () => {
        throw error
      },
    )
    await passage(signal)
    if (isWrite && random.next() < link.lostAnswers) {
      await clock.sleep(timeoutMs / 2, signal)
      throw new KubeError('Timeout', 'no answer', { ambiguous: true })
    }
    return end()
  }

  async function* late<T extends KubeObject>(
    name: string,
    events: AsyncIterable<WatchEvent<T>>,
    signal: AbortSignal,
  ): AsyncGenerator<WatchEvent<T>> {
    // Received events that are delayed keep their order and their times.
    for await (const { event, at } of stamped(events, () => time.now())) {
      await passage(signal)
      for (;;) {
        const lag = link.lagMs.get(name) ?? 0
        const dueIn = lag < 0 || link.cut ? lookAgainMs : at + lag - time.now()
        if (dueIn <= 0) break
        await clock.sleep(Math.min(dueIn, lookAgainMs), signal)
      }
      yield event
    }
  }

  return {
    get: (resource, ref, options) => call(false, options, given => api.get(resource, ref, given)),
    list: (resource, query, options) => call(false, options, given => api.list(resource, query, given)),
    create: (resource, body, options) =>
      call(true, options, given => {
        if (link.refusesPods && resource.plural === 'pods') throw new KubeError('Forbidden', 'exceeded quota')
        return api.create(resource, body, given)
      }).then(async created => {
        if (!link.losesCreates) return created
        await clock.sleep(timeoutMs / 2, options?.signal)
        throw new KubeError('Timeout', 'no answer', { ambiguous: true })
      }),
    patch: (resource, ref, patch, options) =>
      call(true, options, given => api.patch(resource, ref, patch, given)),
    replace: (resource, ref, body, options) =>
      call(true, options, given => api.replace(resource, ref, body, given)),
    delete: (resource, ref, query, options) =>
      call(true, options, given => api.delete(resource, ref, query, given)),
    async *watch(resource, query, options) {
      const signal = eitherOf(options?.signal)
      await passage(signal)
      if (link.cut) {
        await clock.sleep(timeoutMs, signal)
        throw new KubeError('Unavailable', 'cut off')
      }
      yield* late(resourceName(resource), api.watch(resource, query, { ...options, signal }), signal)
    },
    request: (method, path, options) =>
      call(method !== 'GET', options, given => api.request(method, path, given)),
    close: async () => undefined,
  }
}

/** Reads ahead, so that each event carries the time of its receipt. */
async function* stamped<T>(
  events: AsyncIterable<T>,
  now: () => number,
): AsyncGenerator<{ readonly event: T; readonly at: number }> {
  const come: { readonly event: T; readonly at: number }[] = []
  let wake = () => {}
  let end: { readonly error?: unknown } | undefined
  const source = events[Symbol.asyncIterator]()
  const reading = (async () => {
    for (let next = await source.next(); next.done !== true; next = await source.next()) {
      come.push({ event: next.value, at: now() })
      wake()
    }
  })().then(
    () => {
      end = {}
      wake()
    },
    (error: unknown) => {
      end = { error }
      wake()
    },
  )
  try {
    for (;;) {
      const next = come.shift()
      if (next !== undefined) yield next
      else if (end !== undefined) {
        if ('error' in end) throw end.error
        return
      } else
        await new Promise<void>(resolve => {
          wake = resolve
        })
    }
  } finally {
    void source.return?.()
    await reading
  }
}
