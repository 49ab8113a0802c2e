import { Agent, get } from 'node:http'
import { systemClock } from '../../src/kube/clock.ts'
import { connectRedis } from '../../zoo/redis.ts'

/** A client that sends small requests to an app, one after the other, over one connection. */
export interface StallClient {
  /** Returns the longest wait for an answer since the last call, ms. */
  worst(): number
  stop(): Promise<void>
}

/** Between two requests, ms: short beside any stop, long enough not to load the app. */
const pauseMs = 1

export async function redisClient(host: string, signal: AbortSignal): Promise<StallClient> {
  const client = await connectRedis(host)
  return start(() => client.send([['PING']]), client.close, signal)
}

export function httpClient(host: string, port: number, path: string, signal: AbortSignal): StallClient {
  const agent = new Agent({ keepAlive: true, maxSockets: 1 })
  const ask = () =>
    new Promise<void>((resolve, reject) => {
      get({ host, port, path, agent }, response => {
        response.resume().on('end', resolve).on('error', reject)
      }).on('error', reject)
    })
  return start(ask, () => agent.destroy(), signal)
}

function start(ask: () => Promise<unknown>, close: () => void, signal: AbortSignal): StallClient {
  let worst = 0
  let stopped = false
  let askedAt: number | undefined
  const run = async () => {
    while (!stopped && !signal.aborted) {
      askedAt = performance.now()
      await ask()
      worst = Math.max(worst, performance.now() - askedAt)
      askedAt = undefined
      await systemClock.sleep(pauseMs, signal)
    }
  }
  const done = run()
  done.catch(() => undefined)
  return {
    worst() {
      // A request without an answer yet has waited at least this long.
      const seen = Math.max(worst, askedAt === undefined ? 0 : performance.now() - askedAt)
      worst = 0
      return seen
    },
    async stop() {
      stopped = true
      try {
        await done
      } finally {
        close()
      }
    },
  }
}
