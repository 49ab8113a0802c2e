import { randomBytes } from 'node:crypto'
import { connect, type Socket } from 'node:net'

export const redisPort = 6379

/**
 * A connection that sends many commands at once and counts their replies; no command here has a reply of several lines.
 */
export interface RedisClient {
  /**
   * Resolves with the reply to the last command.
   * @throws Error if a reply is an error, or if the connection ends
   */
  send(commands: readonly (readonly (string | Buffer)[])[]): Promise<string>
  close(): void
}

export async function connectRedis(host: string): Promise<RedisClient> {
  const socket = connect({ host, port: redisPort, noDelay: true })
  await new Promise<void>((resolve, reject) => socket.once('connect', resolve).once('error', reject))
  return clientOf(socket)
}

interface Waiting {
  left: number
  failed: string | undefined
  resolve(reply: string): void
  reject(error: Error): void
}

function clientOf(socket: Socket): RedisClient {
  const queue: Waiting[] = []
  let partial = ''
  const end = (error: Error) => {
    for (const waiting of queue.splice(0)) waiting.reject(error)
  }
  socket.setEncoding('latin1')
  socket.on('error', end)
  socket.on('close', () => end(new Error('redis has closed the connection')))
  socket.on('data', (text: string) => {
    const lines = (partial + text).split('\r\n')
    partial = lines.pop() ?? ''
    for (const line of lines) {
      // The length of a bulk string; the reply is on the next line.
      if (line.startsWith('$') && line !== '$-1') continue
      const waiting = queue[0]
      if (waiting === undefined) continue
      if (line.startsWith('-')) waiting.failed ??= line
      waiting.left -= 1
      if (waiting.left > 0) continue
      queue.shift()
      if (waiting.failed === undefined) waiting.resolve(line)
      else waiting.reject(new Error(waiting.failed))
    }
  })
  return {
    send: commands =>
      new Promise((resolve, reject) => {
        queue.push({ left: commands.length, failed: undefined, resolve, reject })
        for (const words of commands) {
          socket.write(`*${words.length}\r\n`)
          for (const word of words) {
            socket.write(`$${Buffer.byteLength(word)}\r\n`)
            socket.write(word)
            socket.write('\r\n')
          }
        }
      }),
    close: () => socket.destroy(),
  }
}

export const valueBytes = 1024
/** Approximate memory of a key with a value of that size. */
const bytesPerKey = 1408
const poolBytes = 8 * 1024 * 1024
const keysAtOnce = 5_000

/** redis-benchmark's names for keys, so that it overwrites them. */
export const keyName = (index: number): string => `key:${String(index).padStart(12, '0')}`

export const keysFor = (bytes: number): number => Math.ceil(bytes / bytesPerKey)

/**
 * Fills an instance with values that are all different and do not compress: slices of one block of random bytes. The
 * slices lie further apart than a compressor's window.
 */
export async function fill(client: RedisClient, keys: number): Promise<void> {
  await client.send([['SET', 'pool', randomBytes(poolBytes)]])
  const script = `
    local pool = redis.call('GET', 'pool')
    local room = #pool - ${valueBytes}
    for i = tonumber(ARGV[1]), tonumber(ARGV[2]) do
      local at = (i * 1048583) % room + 1
      redis.call('SET', string.format('key:%012d', i), i .. ':' .. string.sub(pool, at, at + ${valueBytes} - 1 - #tostring(i) - 1))
    end
    return 1`
  for (let from = 0; from < keys; from += keysAtOnce)
    await client.send([['EVAL', script, '0', String(from), String(Math.min(from + keysAtOnce, keys) - 1)]])
  await client.send([['DEL', 'pool']])
}

/** Writes that many new random values to random keys. Each value begins with the number of its key. */
export async function write(client: RedisClient, keys: number, count: number): Promise<void> {
  const one = () => {
    const key = Math.floor(Math.random() * keys)
    const label = Buffer.from(`${key}:`)
    return ['SET', keyName(key), Buffer.concat([label, randomBytes(valueBytes - label.length)])] as const
  }
  await client.send(Array.from({ length: count }, one))
}

/** Writes until stopped. @returns a function that stops it and throws its error, if any */
export function writeSteadily(client: RedisClient, keys: number, perSecond: number): () => Promise<void> {
  const periodMs = 20
  let stopped = false
  let owed = 0
  let last = performance.now()
  const run = async () => {
    while (!stopped) {
      const now = performance.now()
      owed += ((now - last) / 1000) * perSecond
      last = now
      const count = Math.floor(owed)
      owed -= count
      // Writes delayed by a stop follow right after it, as from clients that wait.
      if (count > 0) await write(client, keys, count)
      await new Promise(resolve => setTimeout(resolve, periodMs))
    }
  }
  const done = run()
  done.catch(() => undefined)
  return () => {
    stopped = true
    return done
  }
}
