import { createServer as createHttp } from 'node:http'
import { type AddressInfo, createServer as createTcp, type Server } from 'node:net'
import { afterEach, describe, expect, test } from 'vitest'
import { type Clock, createFakeClock, systemClock } from '../kube/clock.ts'
import { waitUntilAnswering } from './answering.ts'
import { failure, success } from './result.ts'

const closing: Server[] = []
afterEach(async () => {
  for (const server of closing.splice(0)) await new Promise(resolve => server.close(resolve))
})
const listen = async (server: Server, port = 0): Promise<number> => {
  await new Promise<void>(resolve => server.listen(port, '127.0.0.1', resolve))
  closing.push(server)
  return (server.address() as AddressInfo).port
}

const never = new AbortController().signal
const target = { address: '127.0.0.1' }
const readinessProbe = { tcpSocket: { port: 1 } }
/** Waits long before it starts a second attempt beside one that a busy machine has not answered yet. */
const patientClock: Clock = {
  ...systemClock,
  sleep: (ms, signal) => systemClock.sleep(ms < 200 ? ms : 600_000, signal),
}

describe('a pod that has just gone on stage', () => {
  test('answers when its readiness probe succeeds', async () => {
    let asked = 0
    const port = await listen(
      createHttp((_, response) => {
        asked += 1
        response.writeHead(asked < 4 ? 503 : 200).end()
      }),
    )
    const failures: string[] = []
    const answering = await waitUntilAnswering(
      target,
      {
        containers: [
          {
            name: 'app',
            ports: [{ name: 'web', containerPort: port }],
            // Neither the delay nor the thresholds apply.
            readinessProbe: {
              httpGet: { port: 'web', path: '/ready' },
              initialDelaySeconds: 600,
              successThreshold: 5,
            },
          },
        ],
      },
      {
        signal: never,
        clock: patientClock,
        onFailure: (name, message) => void failures.push(`${name}: ${message}`),
      },
    )
    expect(answering.containers).toEqual([{ name: 'app', by: 'probe' }])
    expect(failures).toEqual(Array(3).fill('app: status 503'))
    expect(asked).toBe(4)
  })

  test('answers when a port is opened that nobody had', async () => {
    const port = await listen(createTcp())
    const [server] = closing.splice(0)
    await new Promise(resolve => server?.close(resolve))
    const reopened = Promise.withResolvers<void>()
    const answering = await waitUntilAnswering(
      target,
      {
        containers: [
          { name: 'app', ports: [{ protocol: 'UDP', containerPort: 1 }, { containerPort: port }] },
        ],
      },
      {
        signal: never,
        onFailure: () => {
          if (closing.length === 0) listen(createTcp(), port).then(() => reopened.resolve(), reopened.reject)
        },
      },
    )
    await reopened.promise
    expect(answering.containers).toEqual([{ name: 'app', by: 'port' }])
  })

  test('all containers must answer; one with nothing to ask is taken at its word', async () => {
    const clock = createFakeClock()
    const begin = clock.monotonic()
    const asked: number[] = []
    const answering = waitUntilAnswering(
      target,
      {
        containers: [
          { name: 'a', readinessProbe },
          { name: 'b', readinessProbe: { exec: { command: ['x'] } }, ports: [{ containerPort: 2 }] },
          { name: 'c', readinessProbe: { exec: { command: ['x'] } } },
        ],
      },
      {
        signal: never,
        clock,
        probe: async handler => {
          const port = 'port' in handler ? handler.port : 0
          asked.push(port)
          return clock.monotonic() - begin >= (port === 1 ? 40 : 10) ? success : failure('not yet')
        },
      },
    )
    await clock.advance(1000)
    expect(await answering).toEqual({
      containers: [
        { name: 'a', by: 'probe' },
        { name: 'b', by: 'port' },
        { name: 'c', by: 'assumed' },
      ],
      ms: 75,
    })
    // At 0, 5, 15, 35, 75 ms for the first; at 0, 5, 15 ms for the second.
    expect(asked.filter(port => port === 1)).toHaveLength(5)
    expect(asked.filter(port => port === 2)).toHaveLength(3)
  })

  test('is asked no more often than every 100 ms in the end', async () => {
    const clock = createFakeClock()
    const stop = new AbortController()
    let asked = 0
    const answering = waitUntilAnswering(
      target,
      { containers: [{ name: 'a', readinessProbe }] },
      {
        signal: stop.signal,
        clock,
        probe: async () => {
          asked += 1
          return failure('no')
        },
      },
    )
    const ended = expect(answering).rejects.toThrow('enough')
    await clock.advance(155)
    const before = asked
    await clock.advance(1000)
    expect(asked - before).toBe(10)
    stop.abort(new Error('enough'))
    await ended
    expect(clock.sleepers()).toBe(0)
  })

  test('an attempt that hangs gets company, up to three', async () => {
    const clock = createFakeClock()
    const hung = Promise.withResolvers<typeof success>()
    let asked = 0
    const answering = waitUntilAnswering(
      target,
      { containers: [{ name: 'a', readinessProbe }] },
      {
        signal: never,
        clock,
        probe: (_, __, { signal }) => {
          asked += 1
          signal.addEventListener('abort', () => hung.reject(signal.reason), { once: true })
          return hung.promise
        },
      },
    )
    await clock.advance(5000)
    expect(asked).toBe(3)
    hung.resolve(success)
    expect((await answering).ms).toBe(5000)
  })

  test('a signal that has fired is an end before the first question', async () => {
    const answering = waitUntilAnswering(
      target,
      { containers: [{ name: 'a', readinessProbe }] },
      { signal: AbortSignal.abort(new Error('enough')) },
    )
    await expect(answering).rejects.toThrow('enough')
  })
})
