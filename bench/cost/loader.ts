/**
 * `loader.ts <redis host> <keys> <pid of redis>`: an open load, which does not wait for anybody. Takes lines
 * `{perSecond, seconds}`, and answers each with a line of JSON (`Load` in load.ts) when the last answer has come. Half
 * of the requests read a key, half overwrite one. Ends with its standard input, so that it never outlives the bench.
 */
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { connect, type Socket } from 'node:net'
import { createInterface } from 'node:readline'
import { setTimeout as sleep } from 'node:timers/promises'
import { keyName, valueBytes } from '../../zoo/redis.ts'
import { type Freeze, latenciesOf } from './latency.ts'
import type { Load, Order } from './load.ts'
import { createReplies } from './replies.ts'

const [host = '', keysText = '', pid = ''] = process.argv.slice(2)
const keys = Number(keysText)
const tickMs = 1
const connectionCount = 16
const patienceMs = 30_000
const pool = randomBytes(1024 * 1024)

interface Connection {
  readonly socket: Socket
  /** The requests without an answer, the oldest first; `from` is the position of that. */
  sent: number[]
  from: number
}

/** When each request of the order was answered, by its number; NaN: not yet. No object is made for a request while it runs. */
let answered = new Float64Array()
let answers = 0

async function open(): Promise<Connection> {
  const socket = connect({ host, port: 6379, noDelay: true })
  await once(socket, 'connect')
  const connection: Connection = { socket, sent: [], from: 0 }
  const take = createReplies(() => {
    const request = connection.sent[connection.from]
    if (request === undefined) throw new Error('redis answered a question that nobody asked')
    connection.from += 1
    answered[request] = performance.now()
    answers += 1
  })
  socket.on('data', take)
  socket.on('close', () => {
    throw new Error('redis has closed the connection')
  })
  return connection
}

function command(): Buffer {
  const key = keyName(Math.floor(Math.random() * keys))
  if (Math.random() < 0.5) return Buffer.from(`*2\r\n$3\r\nGET\r\n$${key.length}\r\n${key}\r\n`)
  const at = Math.floor(Math.random() * (pool.length - valueBytes))
  return Buffer.concat([
    Buffer.from(`*3\r\n$3\r\nSET\r\n$${key.length}\r\n${key}\r\n$${valueBytes}\r\n`),
    pool.subarray(at, at + valueBytes),
    Buffer.from('\r\n'),
  ])
}

/** Made before anything is measured: most of what a client costs, which shares its processors with redis. */
const commands = Array.from({ length: 65_536 }, command)
const anyCommand = () => commands[Math.floor(Math.random() * commands.length)] ?? command()

/** Stopped by a signal, or in the hands of whoever traces it, for whom it may run. */
function standsStill(): boolean {
  const status = readFileSync(`/proc/${pid}/status`, 'latin1')
  return /^State:\s+[Tt]/m.test(status) || !/^TracerPid:\s+0$/m.test(status)
}

async function run(connections: readonly Connection[], { perSecond, seconds }: Order): Promise<Load> {
  const count = Math.round(perSecond * seconds)
  answered = new Float64Array(count).fill(Number.NaN)
  answers = 0
  for (const connection of connections) Object.assign(connection, { sent: [], from: 0 })
  const freezes: Freeze[] = []
  let frozenFrom: number | undefined
  const start = performance.now()
  let lastLook = start
  let sent = 0
  for (const end = start + seconds * 1_000 + patienceMs; answers < count; ) {
    const now = performance.now()
    if (now > end) throw new Error(`${count - answers} of ${count} requests were never answered`)
    const due = Math.min(count, Math.floor(((now - start) / 1_000) * perSecond))
    const writes: Buffer[][] = connections.map(() => [])
    for (; sent < due; sent += 1) {
      const to = sent % connections.length
      connections[to]?.sent.push(sent)
      writes[to]?.push(anyCommand())
    }
    writes.forEach((each, to) => {
      if (each.length > 0) connections[to]?.socket.write(Buffer.concat(each))
    })
    if (standsStill()) frozenFrom ??= lastLook
    else if (frozenFrom !== undefined) {
      freezes.push({ from: frozenFrom, to: performance.now() })
      frozenFrom = undefined
    }
    lastLook = now
    await sleep(tickMs)
  }
  const requests = Array.from(answered, (at, request) => ({
    due: start + (request / perSecond) * 1_000,
    answered: at,
  }))
  const inTime = requests.filter(each => each.answered <= start + seconds * 1_000).length
  return {
    perSecond: inTime / seconds,
    freezes: freezes.map(({ from, to }) => to - from),
    ...latenciesOf(requests, freezes),
  }
}

const connections = await Promise.all(Array.from({ length: connectionCount }, open))
for await (const line of createInterface({ input: process.stdin })) {
  const load = await run(connections, JSON.parse(line) as Order)
  process.stdout.write(`${JSON.stringify(load)}\n`)
}
process.exit(0)
