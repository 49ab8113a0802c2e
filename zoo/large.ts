/** Specimens that take minutes and gigabytes, so not every test run includes them. */
import { connectRedis, fill, keyName, keysFor, type RedisClient, valueBytes, writeSteadily } from './redis.ts'
import type { Specimen } from './specimens.ts'

const bytes = 1e9
const keys = keysFor(bytes)
const writesPerSecond = 1_000
const sampled = 500

async function using<T>(ip: string, work: (client: RedisClient) => Promise<T>): Promise<T> {
  const client = await connectRedis(ip)
  try {
    return await work(client)
  } finally {
    client.close()
  }
}

const must = (what: string, seen: string, wanted: string): void => {
  if (seen !== wanted) throw new Error(`${what} is ${seen.slice(0, 40)} instead of ${wanted}`)
}

/** 1 GB, of which a thousand values a second are overwritten during the refreshes. */
const redis1g: Specimen = {
  name: 'redis-1g',
  program: 'redis-server',
  protocol: 'redis',
  port: 6379,
  template: {
    metadata: { labels: { app: 'redis-1g' } },
    spec: {
      automountServiceAccountToken: false,
      terminationGracePeriodSeconds: 5,
      containers: [
        {
          name: 'redis',
          image: 'understudy.invalid/redis:8.0',
          imagePullPolicy: 'IfNotPresent',
          ports: [{ containerPort: 6379 }],
          readinessProbe: { tcpSocket: { port: 6379 }, periodSeconds: 1 },
        },
      ],
    },
  },
  checkpoint: { keep: 1 },
  patienceMs: 600_000,
  prepare: ip => using(ip, client => fill(client, keys)),
  async load(ip) {
    const client = await connectRedis(ip)
    const stop = writeSteadily(client, keys, writesPerSecond)
    return async () => {
      try {
        await stop()
      } finally {
        client.close()
      }
    }
  },
  add: ip => using(ip, async client => void (await client.send([['INCR', 'count']]))),
  read: ip =>
    using(ip, async client => {
      const reply = await client.send([['INCRBY', 'count', '0']])
      return Number(reply.slice(1))
    }),
  check: ip =>
    using(ip, async client => {
      must('the number of keys', await client.send([['DBSIZE']]), `:${keys + 1}`)
      for (let i = 0; i < sampled; i += 1) {
        const key = Math.floor(Math.random() * keys)
        const label = `${key}:`
        const start = await client.send([['GETRANGE', keyName(key), '0', String(label.length - 1)]])
        must(`the start of key ${key}`, start, label)
        must(`the length of key ${key}`, await client.send([['STRLEN', keyName(key)]]), `:${valueBytes}`)
      }
    }),
}

export const largeSpecimens: readonly Specimen[] = [redis1g]
