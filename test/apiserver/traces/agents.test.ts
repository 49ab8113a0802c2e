/** Operators and agents send one trace: all their code that decides and acts, on a real API server, to a real receiver. */
import { Registry } from 'prom-client'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { Api } from '../../../src/kube/api-types.ts'
import { systemClock as clock } from '../../../src/kube/clock.ts'
import { silentLog as log } from '../../../src/kube/log.ts'
import { openTraces } from '../../../src/traces/open.ts'
import { tracesUrl } from '../../../src/traces/options.ts'
import type { TraceQueue } from '../../../src/traces/queue.ts'
import type { TraceSink } from '../../../src/traces/span.ts'
import { runRound, type Scenario } from '../../sim/model/round.ts'
import { onRealServer } from '../../sim/real/platform.ts'
import { startServer } from '../../sim/real/rounds.ts'
import { type OtlpReceiver, type ReceivedSpan, startOtlpReceiver } from '../../support/otlp-receiver.ts'

let server: { readonly api: Api } & AsyncDisposable
let receiver: OtlpReceiver
beforeAll(async () => {
  server = await startServer()
  receiver = await startOtlpReceiver()
})
afterAll(async () => {
  await server?.[Symbol.asyncDispose]()
  await receiver?.[Symbol.asyncDispose]()
})

const scenario: Scenario = {
  ...{ seed: 1, nodes: 3, replicas: 1, hotBackups: 1, coldBackups: 1, copies: 1, containers: 'one' },
  ...{ moves: true, grants: true },
  steps: [
    { afterMs: 5_000, command: { type: 'endApp', primary: 0, container: 'app' } },
    { afterMs: 15_000, command: { type: 'move', primary: 0, to: undefined, maxDowntimeMs: undefined } },
  ],
}

/** Each process has a queue of its own, as on its machine. */
async function tracesOf(round: Scenario): Promise<ReadonlyMap<string, readonly ReceivedSpan[]>> {
  const over = new AbortController()
  const running: Promise<void>[] = []
  const queues = new Map<string, TraceQueue>()
  for (const process of ['operator', ...[0, 1, 2].map(n => `agent of n${n}`)]) {
    const queue = await openTraces(
      { otlpEndpoint: tracesUrl(receiver.url) },
      { service: process, instance: process, version: '0', registry: new Registry(), clock, log },
    )
    if (queue === undefined) throw new Error('no queue')
    running.push(queue.run(over.signal))
    queues.set(process, queue)
  }
  const traceOf = (process: string): TraceSink => {
    const queue = queues.get(process)
    if (queue === undefined) throw new Error(`no queue for ${process}`)
    return queue.sink
  }
  const { violations } = await onRealServer(server.api, platform =>
    runRound(round, undefined, { ...platform, traceOf }),
  )
  expect(violations).toEqual([])
  over.abort()
  await Promise.all(running)
  return Map.groupBy(receiver.spans, ({ traceId }) => traceId)
}

describe('D22.one: one trace of operator and agents', () => {
  it('for a failover, and one for a Migration', async () => {
    const traces = await tracesOf(scenario)
    const withRoot = (name: string, reason: string) =>
      [...traces.values()].filter(spans =>
        spans.some(span => span.name === name && span.attributes['understudy.reason'] === reason),
      )
    // On a busy machine, a primary may also be unready for too long.
    const [failovers, moves] = [withRoot('failover', 'Died'), withRoot('migration', 'Moved')]
    expect([failovers.length, moves.length]).toEqual([1, 1])
    for (const spans of [...failovers, ...moves]) {
      const ids = new Set(spans.map(({ spanId }) => spanId))
      // A new leader repeats what it does not know to be sent, with the same ids.
      expect(new Set(spans.map(({ spanId, name }) => `${spanId} ${name}`)).size).toBe(ids.size)
      for (const { parentId } of spans) if (parentId !== undefined) expect(ids).toContain(parentId)
      const services = new Set(spans.map(({ service }) => service))
      expect(services).toContain('operator')
      // The node that had the slot, and the node that has it now.
      expect([...services].filter(service => service.startsWith('agent'))).toHaveLength(2)
    }
    const names = (spans: readonly ReceivedSpan[] | undefined) => spans?.map(({ name }) => name)
    expect(names(failovers[0])).toEqual(
      expect.arrayContaining(['detect and report the death', 'use the grant of the heir', 'take over']),
    )
    expect(names(moves[0])).toEqual(
      expect.arrayContaining(['Stopping', 'stop and save the last changes', 'take over']),
    )
  })
})
