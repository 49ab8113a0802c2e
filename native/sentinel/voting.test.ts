import { createHash, createHmac, randomBytes } from 'node:crypto'
import { createSocket } from 'node:dgram'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { beforeAll, describe, expect, test, vi } from 'vitest'
import { buildSanitized } from './testing/build.ts'
import { type Client, type Line, type Sentinel, startSentinel, type Values } from './testing/sentinel.ts'

vi.setConfig({ testTimeout: 30_000, hookTimeout: 180_000 })

const why = process.getuid?.() === 0 ? undefined : '(needs root: it serves nobody else)'

/** Long enough for a busy machine: a pause of this length ends a test. */
const timeout = 1_500
const api = 'api-server'

let program: string
beforeAll(async () => {
  program = await buildSanitized('sentinel')
})

/** A node of the cluster, as its sentinel sees itself. */
interface Node {
  readonly name: string
  readonly sentinel: Sentinel
  readonly client: Client
  readonly port: number
  readonly run: string
  /** Waits for an event that no earlier call has returned. */
  event(word: string, about: Values): Promise<Line>
  ask(verb: string, values?: Values): Promise<string>
}

async function startNode(name: string, directory?: string): Promise<Node & AsyncDisposable> {
  const sentinel = await startSentinel(program, directory === undefined ? {} : { directory })
  const client = await sentinel.connect()
  await client.ask('votes')
  const { values } = await client.ask('heartbeats', { port: 0 })
  return {
    ...{ name, sentinel, client, port: Number(values['port']), run: values['run'] ?? '' },
    event: (word, about) =>
      client.line(
        line =>
          line.word === word &&
          Object.entries(about).every(([key, value]) => line.values[key] === String(value)),
      ),
    ask: async (verb, wanted) => {
      const { word, values: told } = await client.ask(verb, wanted)
      return told['reason'] === undefined ? word : `${word} ${told['reason']}`
    },
    [Symbol.asyncDispose]: () => sentinel[Symbol.asyncDispose](),
  }
}

const key = randomBytes(32).toString('hex')
const voter = ({ name, run }: Node): string => `${name}/${run}`

async function introduce(...nodes: readonly Node[]): Promise<void> {
  for (const one of nodes)
    for (const { name, port, run } of nodes)
      if (name !== one.name)
        expect(await one.ask('peer', { name, address: '127.0.0.1', port, run, key })).toBe('ok')
}

const primary = (voters: readonly string[], over: Values = {}): Values => ({
  ...{ name: 'pod', slot: 'ns/web-0', epoch: 1, version: 1, timeout, voter: voters },
  ...over,
})
const vote = ({ name, run }: Node, over: Values = {}): Values => ({
  ...{ slot: 'ns/web-0', epoch: 1, node: name, run, timeout },
  ...over,
})

describe.skipIf(why !== undefined)(`votes ${why ?? ''}`, () => {
  test('D8.answers: a primary serves while enough of its voters answer', async () => {
    await using a = await startNode('a')
    await using b = await startNode('b')
    await introduce(a, b)
    expect(await a.ask('primary', primary([api, voter(b)]))).toBe('ok')
    await a.event('serves', { name: 'pod', epoch: 1 })
    process.kill(b.sentinel.pid, 'SIGSTOP')
    await a.event('stops', { name: 'pod', epoch: 1 })
    // The API server is enough, too: it is one of two.
    const sent = BigInt(Math.trunc(Number(process.hrtime.bigint())))
    expect(await a.ask('answered', { name: 'pod', epoch: 1, sent: String(sent) })).toBe('ok')
    await a.event('serves', { name: 'pod' })
    await a.event('stops', { name: 'pod' })
    process.kill(b.sentinel.pid, 'SIGCONT')
    await a.event('serves', { name: 'pod' })
  })

  test('D8.statement: who has stated silence answers this epoch no more, whatever becomes of its process', async () => {
    const directory = mkdtempSync(join(tmpdir(), 'sentinel-b-'))
    try {
      await using a = await startNode('a')
      {
        await using b = await startNode('b', directory)
        await introduce(a, b)
        await a.ask('primary', primary([api, voter(b)]))
        await a.event('serves', { epoch: 1 })
        expect(await b.ask('vote', vote(a))).toBe('ok')
        process.kill(a.sentinel.pid, 'SIGSTOP')
        await b.event('silent', { slot: 'ns/web-0', epoch: 1 })
        process.kill(a.sentinel.pid, 'SIGCONT')
        await a.event('stops', { epoch: 1 })
      }
      await using again = await startNode('b', directory)
      expect(again.run).toBe(readFileSync(join(directory, 's.run'), 'utf8'))
      // It knows that by itself, and not after another time-out.
      expect(again.client.lines.filter(({ word }) => word === 'silent')).toHaveLength(1)
      await introduce(a, again)
      // It answers, for the next epoch has its word at once.
      await a.ask('primary', primary([api, voter(again)], { epoch: 2 }))
      await a.event('serves', { epoch: 2 })
      expect(
        a.client.lines.filter(({ word, values }) => word === 'serves' && values['epoch'] === '1'),
      ).toEqual([])
    } finally {
      rmSync(directory, { recursive: true, force: true })
    }
  })

  test('D8.later: who knows a later epoch answers no earlier one', async () => {
    await using a = await startNode('a')
    await using b = await startNode('b')
    await introduce(a, b)
    await b.ask('vote', vote(a, { epoch: 2 }))
    await a.ask('primary', primary([voter(b)], { epoch: 1 }))
    await a.ask('primary', primary([voter(b)], { name: 'other', slot: 'ns/web-1' }))
    await a.event('serves', { name: 'other' })
    expect(await b.ask('vote', vote(a, { epoch: 1 }))).toBe('refused older')
    await a.ask('primary', primary([voter(b)], { epoch: 2 }))
    await a.event('serves', { name: 'pod', epoch: 2 })
    expect(
      a.client.lines.filter(({ values }) => values['name'] === 'pod' && values['epoch'] === '1'),
    ).toEqual([])
  })

  test('D8.joint: while the voters change, a primary needs both sets', async () => {
    await using a = await startNode('a')
    await using b = await startNode('b')
    await using c = await startNode('c')
    await introduce(a, b)
    await a.ask('primary', primary([voter(b)]))
    await a.event('serves', {})
    expect(await a.ask('primary', primary([voter(b)], { version: 2, next: [voter(c)] }))).toBe('ok')
    await a.event('stops', {})
    await introduce(a, c)
    await a.event('serves', {})
    expect(await a.ask('primary', primary([voter(b)], { version: 1 }))).toBe('refused older')
    expect(await a.ask('primary', primary([voter(c)], { version: 3 }))).toBe('ok')
  })

  test('D8.runs: a voter that was started with its machine is another voter', async () => {
    await using a = await startNode('a')
    await using b = await startNode('b')
    await introduce(a, b)
    const before = `b/${'0'.repeat(15)}1`
    await a.ask('primary', primary([before]))
    await a.ask('primary', primary([voter(b)], { name: 'other', slot: 'ns/web-1' }))
    await a.event('serves', { name: 'other' })
    expect(a.client.lines.filter(({ values }) => values['name'] === 'pod')).toEqual([])
  })

  test('D8.forged: no datagram without the key of the two nodes counts, and none does harm', async () => {
    await using a = await startNode('a')
    await using b = await startNode('b')
    // The two do not have the same key.
    await introduce(a, b)
    await b.ask('peer', { name: 'a', address: '127.0.0.1', port: a.port, run: a.run, key: 'f'.repeat(64) })
    await a.ask('primary', primary([voter(b)]))
    await b.ask('vote', vote(a))
    const socket = createSocket('udp4')
    const heads = [Buffer.from('USHB'), Buffer.from([1]), Buffer.from([1])]
    for (let i = 0; i < 2_000; i += 1) {
      const bytes = Buffer.concat([...heads.slice(0, i % 4), randomBytes((i * 7) % 1_000)])
      await new Promise<void>((resolve, reject) =>
        socket.send(bytes, b.port, '127.0.0.1', error => (error ? reject(error) : resolve())),
      )
    }
    await new Promise<void>(resolve => socket.close(() => resolve()))
    await b.event('silent', { epoch: 1 })
    expect(a.client.lines.filter(({ word }) => word === 'serves')).toEqual([])
    expect(await b.ask('hello')).toBe('ok')
  })

  test('D8.replay: a beat that comes twice is answered once, and its answer can be checked', async () => {
    await using b = await startNode('b')
    const socket = createSocket('udp4')
    await new Promise<void>(resolve => socket.bind(0, '127.0.0.1', () => resolve()))
    const run = 'a'.repeat(16)
    const { port } = socket.address()
    await b.ask('peer', { name: 'a', address: '127.0.0.1', port, run, key })
    await b.ask('vote', { slot: 'ns/web-0', epoch: 2, node: 'a', run, timeout: 60_000 })
    const code = (bytes: Buffer) => createHmac('sha256', Buffer.from(key, 'hex')).update(bytes).digest()
    const slot = createHash('sha256').update('ns/web-0').digest('hex').slice(0, 16)
    const beat = (sent: number) => {
      const claims = [`${slot}0000000200`, `${slot}0000000100`, `${'0'.repeat(16)}0000000900`]
      const body = Buffer.from(
        `55534842${'01'}${'01'}0003${run}${b.run}${sent.toString(16).padStart(16, '0')}${claims.join('')}`,
        'hex',
      )
      return Buffer.concat([body, code(body)])
    }
    const answers: Buffer[] = []
    socket.on('message', bytes => answers.push(bytes))
    for (const sent of [5, 5, 4, 6]) socket.send(beat(sent), b.port, '127.0.0.1')
    await vi.waitFor(() => expect(answers).toHaveLength(2))
    const read = answers.map(bytes => {
      const body = bytes.subarray(0, -32)
      expect(bytes.subarray(-32)).toEqual(code(body))
      return body.toString('hex')
    })
    const answered = [`${slot}0000000200`, `${slot}0000000101`, `${'0'.repeat(16)}0000000900`].join('')
    expect(read).toEqual(
      [5, 6].map(
        sent => `55534842${'01'}${'02'}0003${b.run}${run}${sent.toString(16).padStart(16, '0')}${answered}`,
      ),
    )
    await new Promise<void>(resolve => socket.close(() => resolve()))
  })

  test('D8.many: more primaries than fit into one datagram serve', async () => {
    await using a = await startNode('a')
    await using b = await startNode('b')
    await introduce(a, b)
    const names = Array.from({ length: 150 }, (_, at) => `pod-${at}`)
    for (const name of names) await a.ask('primary', primary([voter(b)], { name, slot: `ns/${name}` }))
    for (const name of names) await a.event('serves', { name })
  })

  test.each<readonly [reason: string, verb: string, values: Values]>([
    ['bad-address', 'peer', { name: 'b', address: 'b', port: 1, run: '0'.repeat(16), key }],
    ['bad-address', 'peer', { name: 'b', address: '::1', port: 0, run: '0'.repeat(16), key }],
    ['bad-key', 'peer', { name: 'b', address: '::1', port: 1, run: '0', key }],
    ['bad-key', 'peer', { name: 'b', address: '::1', port: 1, run: '0'.repeat(16), key: key.slice(1) }],
    ['bad-port', 'heartbeats', { port: 70_000 }],
    ['bad-epoch', 'primary', primary([api], { epoch: 'x' })],
    ['bad-version', 'primary', primary([api], { version: -1 })],
    ['bad-timeout', 'primary', primary([api], { timeout: 1 })],
    ['bad-voter', 'primary', primary(['b'])],
    ['bad-voter', 'primary', primary(['/0000000000000001'])],
    ['bad-voter', 'primary', primary(Array.from({ length: 17 }, (_, i) => `n${i}/${'0'.repeat(16)}`))],
    ['missing-voter', 'primary', primary([])],
    ['bad-run', 'vote', { slot: 's', epoch: 1, node: 'a', run: 'x', timeout }],
    ['unknown-key', 'vote', { slot: 's', epoch: 1, node: 'a', run: '0'.repeat(16), timeout, stated: 1 }],
    ['bad-time', 'answered', { name: 'pod', epoch: 1, sent: String(2n ** 62n) }],
  ])('D8.refused: %s', async (reason, verb, values) => {
    await using a = await startNode('a')
    expect(await a.ask(verb, values)).toBe(`refused ${reason}`)
  })
})
