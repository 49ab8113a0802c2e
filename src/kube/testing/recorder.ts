/** A recorder before a server of events that can fail, on a clock that the test moves. */
import { createFakeClock } from '../clock.ts'
import { KubeError, type KubeErrorCode } from '../errors.ts'
import type { EventRecord } from '../event-record.ts'
import type { Log } from '../log.ts'
import { seededRandom } from '../random.ts'
import { createRecorder, type RecorderOptions } from '../recorder.ts'
import { fakeApi, makeObject } from './fake-api.ts'

export interface Stored {
  metadata: { name: string; namespace: string }
  note: string
  reason: string
  eventTime: string
  series?: { count: number; lastObservedTime: string }
}

export const makeRecorder = (options: Partial<RecorderOptions> = {}) => {
  const clock = createFakeClock()
  /** The events on the server, and the number of requests. */
  const server = new Map<string, Stored>()
  const state = { requests: 0, fail: undefined as KubeErrorCode | undefined, loseAnswer: false, hang: false }
  const results: Record<string, number> = {}
  const warnings: string[] = []
  let gauge = () => ({ pending: -1 })
  const request = async (act: () => void) => {
    state.requests++
    if (state.hang) await new Promise(() => {})
    if (state.fail)
      throw new KubeError(state.fail, 'fault', {
        retryAfterMs: state.fail === 'Throttled' ? 7000 : undefined,
      })
    act()
    if (state.loseAnswer) {
      state.loseAnswer = false
      throw new KubeError('Unavailable', 'reset', { ambiguous: true })
    }
  }
  const api = fakeApi({
    create: async (_, body) => {
      const event = body as Stored
      await request(() => {
        if (server.has(event.metadata.name)) throw new KubeError('AlreadyExists', 'exists')
        server.set(event.metadata.name, structuredClone(event))
      })
      return makeObject(event)
    },
    patch: async (_, ref, { body }) => {
      await request(() => {
        const event = server.get(ref.name)
        if (!event) throw new KubeError('NotFound', 'not found')
        Object.assign(event, structuredClone(body))
      })
      return makeObject({})
    },
  })
  const log: Log = { debug() {}, info() {}, error() {}, warn: (_, message) => void warnings.push(message) }
  const recorder = createRecorder({
    api,
    component: 'test-operator',
    instance: 'test-operator-1',
    clock,
    log,
    random: seededRandom(1),
    metrics: {
      event: result => {
        results[result] = (results[result] ?? 0) + 1
      },
      gauges: read => {
        gauge = read
      },
    },
    ...options,
  })
  return {
    clock,
    recorder,
    server,
    state,
    results,
    warnings,
    pending: () => gauge().pending,
    stored: () => [...server.values()],
  }
}

export const event = (change: Partial<EventRecord> = {}): EventRecord => ({
  regarding: { apiVersion: 'v1', kind: 'Pod', namespace: 'ns', name: 'web-0', uid: 'u1' },
  type: 'Normal',
  reason: 'Promoted',
  action: 'Promote',
  note: 'hot backup web-1 is primary now',
  ...change,
})
