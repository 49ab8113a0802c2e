import { Redis } from 'ioredis'
import { messageOf } from '../kube/errors.ts'
import type { Log } from '../kube/log.ts'
import type { Random } from '../kube/random.ts'
import { type StateStore, StoreUnavailable } from './state-store.ts'

export interface RedisOptions {
  /** `redis://[user@]host[:port][/db]`, or `rediss://` for TLS. */
  readonly url: string
  /** Overrides the password in the URL. */
  readonly password: string | undefined
  /** Trusted certificates in PEM form, in addition to the system's. */
  readonly ca: string | undefined
}

/** Timeout of a command, ms; a value gets 1 ms more for each 2000 bytes. */
const patienceMs = 2_000
const slowest = 2_000
/** Timeout of a connection that waits for data and receives none, ms. */
const silenceMs = 15_000
const firstRetryMs = 200
const longestRetryMs = 10_000

/** Parses the URL of a Redis. @throws Error if it is not one. */
export function parseRedisUrl(url: string): {
  host: string
  port: number
  db: number
  username?: string
  password?: string
  tls: boolean
} {
  const parsed = URL.parse(url)
  const db = /^\/(\d{1,4})$/.exec(parsed?.pathname ?? '')?.[1]
  const isPathEmpty = parsed?.pathname === '' || parsed?.pathname === '/'
  if (
    parsed === null ||
    (parsed.protocol !== 'redis:' && parsed.protocol !== 'rediss:') ||
    parsed.hostname === '' ||
    (db === undefined && !isPathEmpty)
  )
    // Without the URL, which may contain a password.
    throw new Error(
      'the state store must be "memory", or a URL such as redis://host:6379/0 or rediss://host:6379',
    )
  return {
    host: parsed.hostname.replace(/^\[|\]$/g, ''),
    port: Number(parsed.port) || 6379,
    db: Number(db ?? 0),
    ...(parsed.username === '' ? {} : { username: decodeURIComponent(parsed.username) }),
    ...(parsed.password === '' ? {} : { password: decodeURIComponent(parsed.password) }),
    tls: parsed.protocol === 'rediss:',
  }
}

/**
 * A client of a Redis that may be down, slow, flapping or empty at any moment. While it is down, the client queues no
 * commands; it never sends a command twice. It closes a connection without answers, so that no command and no value
 * waits forever.
 * @throws Error if the URL is invalid.
 */
export function createRedisStore({ url, password, ca }: RedisOptions, log: Log, random: Random): StateStore {
  const { tls, ...address } = parseRedisUrl(url)
  const redis = new Redis({
    ...address,
    ...(password === undefined ? {} : { password }),
    ...(tls ? { tls: { ...(ca === undefined ? {} : { ca }), servername: address.host } } : {}),
    // Old and forked servers support it too.
    protocol: 2,
    disableClientInfo: true,
    connectionName: 'understudy',
    connectTimeout: patienceMs,
    // Also while connecting: a stopped server accepts connections and then sends nothing.
    socketTimeout: silenceMs,
    disconnectTimeout: 500,
    enableOfflineQueue: false,
    maxRetriesPerRequest: 0,
    autoResendUnfulfilledCommands: false,
    retryStrategy: times =>
      Math.min(longestRetryMs, firstRetryMs * 2 ** Math.min(times - 1, 10)) * (0.75 + random.next() / 2),
  })
  let told: 'up' | 'down' | undefined
  const say = (state: 'up' | 'down', error?: unknown) => {
    if (told === state) return
    told = state
    if (state === 'up') log.info({ host: address.host, port: address.port }, 'the state store answers')
    else
      log.warn(
        { host: address.host, port: address.port, err: error },
        'the state store does not answer: if the operator restarts now, its history and pulled state are lost',
      )
  }
  redis.on('ready', () => say('up'))
  redis.on('error', (error: unknown) => say('down', error))
  redis.on('close', () => say('down'))

  const within = async <T>(bytes: number, command: () => Promise<T>): Promise<T> => {
    // The client would reject it too, but only after encoding the value.
    if (redis.status !== 'ready') throw new StoreUnavailable('the state store is not connected')
    let timer: NodeJS.Timeout | undefined
    const late = new Promise<never>((_, reject) => {
      timer = setTimeout(
        () => {
          // The late answers to earlier commands would still arrive in order: reconnect.
          redis.disconnect(true)
          reject(new StoreUnavailable('the state store did not answer in time'))
        },
        patienceMs + bytes / slowest,
      )
    })
    const answer = command()
    // It settles when the connection ends; by then no caller waits for it.
    answer.catch(() => {})
    try {
      return await Promise.race([answer, late])
    } catch (error) {
      throw error instanceof StoreUnavailable
        ? error
        : new StoreUnavailable(messageOf(error), { cause: error })
    } finally {
      clearTimeout(timer)
    }
  }
  return {
    durable: true,
    get: key => within(0, async () => (await redis.getBuffer(key)) ?? undefined),
    put: (key, value, ttlMs) =>
      within(value.length, async () => {
        await redis.set(key, Buffer.from(value.buffer, value.byteOffset, value.length), 'PX', ttlMs)
      }),
    touch: (key, ttlMs) => within(0, async () => (await redis.pexpire(key, ttlMs)) === 1),
    delete: keys =>
      within(0, async () => {
        if (keys.length > 0) await redis.del(...keys)
      }),
    async close() {
      redis.disconnect()
    },
  }
}
