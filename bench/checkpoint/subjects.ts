import type { PodTemplate } from '../../src/api/backuppodset.ts'
import { connectRedis, fill, keysFor, writeSteadily } from '../../zoo/redis.ts'
import { httpClient, redisClient, type StallClient } from './stall.ts'

export interface Images {
  readonly redis: string
  readonly zoo: string
}

/** A load on the application during the measurement. */
export interface Load {
  /** @throws the load's own error */
  stop(): Promise<void>
}

export interface Subject {
  /** As it appears in the names of its cases. */
  readonly name: string
  /** Name of its set. */
  readonly set: string
  readonly interval: string
  readonly template: (images: Images) => PodTemplate
  /** Fills it to its size. */
  readonly prepare: (host: string) => Promise<void>
  readonly load: ((host: string) => Promise<Load>) | undefined
  readonly client: (host: string, signal: AbortSignal) => Promise<StallClient>
  /** Share of the requested trials: large subjects take long. */
  readonly share: number
  /** Number of its keys, if the cost of a number of writes is measured too. */
  readonly keys: number | undefined
}

const container = 'app'
export const containerName = container

function templateOf(app: string, image: string, command: readonly string[], port: number): PodTemplate {
  return {
    metadata: { labels: { app } },
    spec: {
      automountServiceAccountToken: false,
      containers: [
        {
          name: container,
          image,
          imagePullPolicy: 'IfNotPresent',
          ...(command.length === 0 ? {} : { command: [...command] }),
          ports: [{ containerPort: port }],
          readinessProbe: { tcpSocket: { port }, periodSeconds: 1 },
          securityContext: { seccompProfile: { type: 'RuntimeDefault' } },
        },
      ],
    },
  }
}

/** A redis of that size; a gigabyte of it is saved every five seconds elsewhere in the benches. */
export const redis = (
  size: string,
  bytes: number,
  more: Partial<Subject> & { readonly writesPerSecond?: number } = {},
): Subject => {
  const { writesPerSecond, ...rest } = more
  const keys = bytes === 0 ? 0 : keysFor(bytes)
  const set = `redis-${size.toLowerCase()}`
  return {
    name: `redis ${size}`,
    set,
    interval: '1s',
    template: images => templateOf(set, images.redis, [], 6379),
    prepare: async host => {
      if (keys === 0) return
      const client = await connectRedis(host)
      try {
        await fill(client, keys)
      } finally {
        client.close()
      }
    },
    load:
      writesPerSecond === undefined
        ? undefined
        : async host => {
            const client = await connectRedis(host)
            const stop = writeSteadily(client, keys, writesPerSecond)
            return {
              async stop() {
                try {
                  await stop()
                } finally {
                  client.close()
                }
              },
            }
          },
    client: redisClient,
    share: 1,
    keys: undefined,
    ...rest,
  }
}

export const subjects: readonly Subject[] = [
  redis('3MB', 0),
  {
    name: 'node',
    set: 'node',
    interval: '1s',
    template: images => templateOf('node', images.zoo, ['/usr/bin/node', '/zoo/server.mjs'], 8080),
    prepare: async () => undefined,
    load: undefined,
    client: async (host, signal) => httpClient(host, 8080, '/peek', signal),
    share: 1,
    keys: undefined,
  },
  redis('100MB', 100e6, { share: 0.5 }),
  redis('1GB', 1e9, { interval: '5s', share: 0.25, writesPerSecond: 1_000, keys: keysFor(1e9) }),
]

/** @throws Error if no subject has that name */
export function subject(name: string): Subject {
  const found = subjects.find(it => it.name === name)
  if (found === undefined) throw new Error(`unknown subject ${name}`)
  return found
}
