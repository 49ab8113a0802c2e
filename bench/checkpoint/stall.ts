import { Agent, get } from 'node:http'
import { systemClock } from '../../src/kube/clock.ts'
import { connectRedis } from '../../zoo/redis.ts'

/** A client that asks an app for next to nothing, again and again, over one connection. */
export interface StallClient {
  /** The longest that it has waited for an answer since it was last asked, ms. */
  worst(): number
  stop(): Promise<void>
}

/** Between two questions, ms: short beside any stop, long enough to leave the app alone. */
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
      // One that is still waiting has waited at least so long.
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
