/** The network between a process and the API server: it takes time, loses responses, and delays watches. */
import type { Api, CallOptions, WatchEvent } from '../../../src/kube/api-types.ts'
import { KubeError } from '../../../src/kube/errors.ts'
import type { KubeObject } from '../../../src/kube/object.ts'
import type { Random } from '../../../src/kube/random.ts'
import { type Resource, resourceName } from '../../../src/kube/resources.ts'
import { selectorOf } from '../../../src/kube/selector.ts'
import type { ApiServer, HistoryEvent } from '../../../src/kube/testing/api-server.ts'
import { inOrder, visible } from '../../../src/kube/testing/selection.ts'
import type { Party, VirtualTime } from './virtual-time.ts'

/** The present faults of the connection. Each can change at any moment. */
export interface Link {
  /** No traffic: requests fail after a while, watches fall silent. */
  cut: boolean
  /** Share of requests that the server carries out but whose response is lost. */
  lostAnswers: number
  /** The server carries out creations, but their responses are lost. */
  losesCreates: boolean
  /** The server refuses to create pods, as with a quota. */
  refusesPods: boolean
  /** Share of requests that the server refuses with 429 or 503. */
  refusals: number
  /** By resource: delay of its watch events, ms; -1: the watches have fallen silent. */
  readonly lagMs: Map<string, number>
}

/** Kinds, besides pods, whose status is a subresource. */
export const statusKinds = ['backuppodsets', 'nodereports', 'migrations']

export const createLink = (): Link => ({
  ...{ cut: false, lostAnswers: 0, losesCreates: false, refusesPods: false, refusals: 0, lagMs: new Map() },
})

interface Options {
  readonly server: ApiServer
  readonly time: VirtualTime
  readonly party: Party
  readonly link: Link
  readonly random: Random
}

interface Waits {
  forMs(ms: number): Promise<void>
  forChange(resource: string): Promise<void>
  end(): void
}

/** A request over a cut connection fails after this long, ms, unless the caller times out earlier. */
const cutMs = 5_000

export function createNetworkApi({ server, time, party, link, random }: Options): Api {
  const clock = time.clockOf(party)

  const call = async <T>(
    isWrite: boolean,
    { signal, timeoutMs = cutMs }: Pick<CallOptions, 'signal' | 'timeoutMs'> = {},
    run: () => T,
  ): Promise<T> => {
    await clock.sleep(1 + random.next() * 4, signal)
    if (link.cut) {
      await clock.sleep(Math.min(timeoutMs, cutMs), signal)
      throw new KubeError('Unavailable', 'cut off')
    }
    if (random.next() < link.refusals) {
      await clock.sleep(1, signal)
      throw random.next() < 0.5
        ? new KubeError('Throttled', 'too many requests', { status: 429, retryAfterMs: 1_000 })
        : new KubeError('Unavailable', 'etcd has no leader', { status: 503 })
    }
    const result = run()
    if (isWrite && random.next() < link.lostAnswers) {
      await clock.sleep(Math.min(timeoutMs, cutMs / 2), signal)
      throw new KubeError('Timeout', 'no answer', { ambiguous: true })
    }
    await clock.sleep(1 + random.next() * 4, signal)
    return result
  }

  async function* watch<T extends KubeObject>(
    resource: Resource<T>,
    query: {
      readonly namespace?: string | undefined
      readonly labelSelector?: string | undefined
      readonly fieldSelector?: string | undefined
      readonly resourceVersion?: string | undefined
      readonly sendInitialEvents?: boolean | undefined
    },
    signal: AbortSignal | undefined,
  ): AsyncGenerator<WatchEvent<T>> {
    const name = resourceName(resource)
    const selects = selectorOf(query)
    const history = server.history(resource)
    await clock.sleep(2 + random.next() * 5, signal)
    if (link.cut) {
      await clock.sleep(cutMs, signal)
      throw new KubeError('Unavailable', 'cut off')
    }
    let at = history.length
    if (query.sendInitialEvents) {
      const version = String(server.version)
      for (const object of inOrder(server.list(resource).filter(selects))) yield { type: 'ADDED', object }
      yield { type: 'BOOKMARK', resourceVersion: version, initialEventsEnd: true }
    } else {
      const from = Number(query.resourceVersion ?? 0)
      at = history.findIndex(({ version }) => version > from)
      if (at < 0) at = history.length
    }
    const wait = waitsUntil(signal)
    try {
      for (;;) {
        const event = history[at]
        if (event === undefined) {
          await wait.forChange(name)
          continue
        }
        const told = visible<T>(event, selects)
        if (told !== undefined) {
          await reach(name, event, wait)
          yield told
        }
        at += 1
      }
    } finally {
      wait.end()
    }
  }

  /** Waits until an event may be visible here. */
  const reach = async (name: string, { at }: HistoryEvent, wait: Waits) => {
    const onTheWayMs = 2 + random.next() * 3
    for (;;) {
      const lag = link.lagMs.get(name) ?? 0
      const dueIn = lag < 0 || link.cut ? 200 : at - time.epoch + lag + onTheWayMs - time.now()
      if (dueIn <= 0) return
      await wait.forMs(Math.min(dueIn, 500))
    }
  }

  const waiting = new Map<string, Set<() => void>>()
  server.subscribe(name => {
    const wakes = waiting.get(name)
    waiting.delete(name)
    for (const wake of wakes ?? []) wake()
  })

  /** The successive waits of one watch: one listener on the signal serves them all. */
  const waitsUntil = (signal: AbortSignal | undefined): Waits => {
    let fail: ((reason: unknown) => void) | undefined
    const onAbort = () => fail?.(signal?.reason)
    signal?.addEventListener('abort', onAbort, { once: true })
    const next = (begin: (resolve: () => void) => void) => {
      signal?.throwIfAborted()
      return new Promise<void>((resolve, reject) => {
        fail = reject
        begin(resolve)
      })
    }
    return {
      forMs: ms => next(resolve => time.after(party, ms, resolve)),
      forChange: name =>
        next(resolve => {
          const wakes = waiting.get(name) ?? new Set()
          waiting.set(name, wakes.add(resolve))
        }),
      end: () => signal?.removeEventListener('abort', onAbort),
    }
  }

  return {
    get: (resource, ref, options) => call(false, options, () => server.get(resource, ref)),
    list: (resource, query, options) =>
      call(false, options, () => ({
        metadata: { resourceVersion: String(server.version) },
        items: inOrder(server.list(resource).filter(selectorOf(query))),
      })),
    create: (resource, body, options) =>
      call(true, options, () => {
        if (link.refusesPods && resource.plural === 'pods') throw new KubeError('Forbidden', 'exceeded quota')
        return server.create(resource, body, options?.namespace)
      }).then(async created => {
        if (!link.losesCreates) return created
        await clock.sleep(cutMs / 2, options?.signal)
        throw new KubeError('Timeout', 'no answer', { ambiguous: true })
      }),
    patch: (resource, ref, patch, options) =>
      call(true, options, () => {
        if (patch.type !== 'merge' && patch.type !== 'strategic') throw new TypeError(`no ${patch.type} here`)
        return server.patch(resource, ref, patch.type, patch.body, options?.subresource)
      }),
    replace: (resource, ref, body, options) =>
      call(true, options, () => server.replace(resource, ref, body, options?.subresource)),
    delete: (resource, ref, query, options) =>
      call(true, options, () =>
        server.delete(
          resource,
          ref,
          { uid: query?.uid, resourceVersion: query?.resourceVersion },
          query?.gracePeriodSeconds,
        ),
      ),
    watch: (resource, query, options) => watch(resource, query, options?.signal),
    request: async () => ({ status: 200, body: {} }),
    close: async () => undefined,
  }
}
