/** A reflector and its store before a server of one resource; the test moves the clock of its pauses. */
import { expect, onTestFinished, vi } from 'vitest'
import { createApi } from '../api.ts'
import { createFakeClock } from '../clock.ts'
import type { ReflectorGauges, ReflectorMetrics } from '../metrics-hooks.ts'
import type { KubeObject } from '../object.ts'
import { seededRandom } from '../random.ts'
import { createReflector, type ReflectorOptions } from '../reflector.ts'
import type { Resource } from '../resources.ts'
import { createStore } from '../store.ts'
import { startWatchServer, type WatchServer } from './watch-server.ts'

interface Thing extends KubeObject {
  readonly note?: string
}
const things: Resource<Thing> = { group: '', version: 'v1', plural: 'pods', kind: 'Pod', namespaced: true }

export async function startMirror(
  options: Partial<ReflectorOptions<Thing>> & { before?: (server: WatchServer) => unknown } = {},
) {
  const server = await startWatchServer()
  options.before?.(server)
  const api = createApi({ connection: server.connection })
  // The test moves the clock of pauses; the network runs in real time.
  const clock = createFakeClock()
  const store = createStore<Thing>({ freeze: true })
  const changes: string[] = []
  store.subscribe(({ type, object, initial }) => {
    changes.push(`${type} ${object.metadata.name} ${object.metadata.uid}${initial ? ' initial' : ''}`)
  })
  const { counts, metrics, read } = countingMetrics()
  const logged: string[] = []
  const write = (level: string) => (_: unknown, message: string) => logged.push(`${level} ${message}`)
  const reflector = createReflector<Thing>({
    api,
    resource: things,
    query: { namespace: 'ns' },
    store,
    clock,
    random: seededRandom(3),
    log: { debug: write('debug'), info: write('info'), warn: write('warn'), error: write('error') },
    metrics,
    ...options,
  })
  const stop = new AbortController()
  const running = reflector.run(stop.signal)
  let ended = false
  running.finally(() => {
    ended = true
  })
  onTestFinished(async () => {
    stop.abort()
    await running
    await api.close()
    await server.close()
  })
  const has = (...expected: string[]) =>
    vi.waitFor(() => {
      const names = store.list().map(o => `${o.metadata.name}@${o.metadata.resourceVersion}`)
      expect(names.sort()).toEqual(expected.sort())
    })
  return {
    server,
    store,
    clock,
    reflector,
    changes,
    counts,
    logged,
    stop,
    has,
    ended: () => ended,
    read,
    /** Waits for an open watch, and until the first snapshot is in the store. */
    watching: () => vi.waitFor(() => expect([server.watchers(), reflector.hasSynced()]).toEqual([1, true])),
    /** Waits for the pause after a failure, and skips it. */
    async pause(ms: number) {
      await clock.untilSleepers(1)
      await clock.advance(ms)
    },
  }
}

function countingMetrics() {
  const counts: Record<string, number> = {}
  const count = (name: string) => {
    counts[name] = (counts[name] ?? 0) + 1
  }
  let gauges: (() => ReflectorGauges) | undefined
  const metrics: ReflectorMetrics = {
    list: () => count('lists'),
    watch: () => count('watches'),
    event: (_, type) => count(type),
    error: (_, code) => count(`error ${code}`),
    subscriberError: () => count('subscriber errors'),
    gauges: (_, read) => {
      gauges = read
    },
  }
  return { counts, metrics, read: () => gauges?.() as ReflectorGauges }
}
