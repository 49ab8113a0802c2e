import { createHash, createHmac, randomBytes } from 'node:crypto'
import { createSocket } from 'node:dgram'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { describe, expect, test, vi } from 'vitest'
import { eventually } from '../../test/support/eventually.ts'
import { introduce, key, type Node, primary, startNode, timeout, vote, voter } from './testing/voters.ts'

/** The first word of every datagram between two nodes with this key. */
const tagOf = (of: string) =>
  createHmac('sha256', Buffer.from(of, 'hex')).update('tag').digest().subarray(0, 4)

/** The primary of `a` has `b` as its only voter. */
async function elect(a: Node, b: Node, over: { readonly timeout?: number } = {}): Promise<void> {
  await introduce(a, b)
  await b.ask('vote', vote(a, over))
  expect(await a.ask('primary', primary([voter(b)], over))).toBe('ok')
}

const why = process.getuid?.() === 0 ? undefined : '(needs root: it serves nobody else)'

describe.skipIf(why !== undefined)(`datagrams and promises ${why ?? ''}`, () => {
  test('D8.forged: no datagram without the key of the two nodes counts, and none does harm', async () => {
    await using a = await startNode('a')
    await using b = await startNode('b')
    // The two do not have the same key.
    await introduce(a, b)
    await b.ask('peer', { name: 'a', address: '127.0.0.1', port: a.port, run: a.run, key: 'f'.repeat(64) })
    const refused = a.ask('primary', primary([voter(b)]))
    await b.ask('vote', vote(a))
    const socket = createSocket('udp4')
    const heads = [tagOf('f'.repeat(64)), Buffer.from([1]), Buffer.from([1])]
    for (let i = 0; i < 2_000; i += 1) {
      const bytes = Buffer.concat([...heads.slice(0, i % 4), randomBytes((i * 7) % 1_000)])
      await new Promise<void>((resolve, reject) =>
        socket.send(bytes, b.port, '127.0.0.1', error => (error ? reject(error) : resolve())),
      )
    }
    await new Promise<void>(resolve => socket.close(() => resolve()))
    await b.event('silent', { epoch: 1 })
    expect(a.client.lines.filter(({ word }) => word === 'serves')).toEqual([])
    expect(await refused).toBe('refused no-answers')
    expect(await b.ask('hello')).toBe('ok')
  })

  test('D8.first: a node has time for the first heartbeat of an epoch before its silence counts', async () => {
    await using a = await startNode('a')
    await using b = await startNode('b')
    const began = performance.now()
    await b.ask('vote', vote(a))
    // The time counts from the vote, also if this node begins to listen later.
    await introduce(a, b)
    await b.event('silent', { epoch: 1 })
    expect(performance.now() - began).toBeGreaterThanOrEqual(2_000 + timeout)
  })

  test('D8.suspect: who will state a silence soon says so, until the next heartbeat or the statement', async () => {
    await using a = await startNode('a')
    await using b = await startNode('b')
    const longer = { timeout: 6 * timeout }
    await elect(a, b, longer)
    process.kill(a.sentinel.pid, 'SIGSTOP')
    await b.event('suspect', { slot: 'ns/web-0', epoch: 1 })
    process.kill(a.sentinel.pid, 'SIGCONT')
    await b.event('trust', { slot: 'ns/web-0', epoch: 1 })
    // So that a reader of its log knows why.
    await eventually(() => expect(a.sentinel.stderr()).toContain('"msg":"the loop woke late"'))
    process.kill(a.sentinel.pid, 'SIGSTOP')
    await b.event('suspect', { epoch: 1 })
    const late = await b.sentinel.connect()
    await late.ask('votes')
    expect(late.lines.map(({ word }) => word)).toEqual(['suspect'])
    await b.event('silent', { epoch: 1 })
    const after = await b.sentinel.connect()
    await after.ask('votes')
    expect(after.lines.map(({ word }) => word)).toEqual(['silent'])
    process.kill(a.sentinel.pid, 'SIGCONT')
  })

  test.each(['before', 'after'])(
    'D8.all-paused: a voter that was paused together with the node of the primary waits for its next heartbeat: %s the suspicion',
    async when => {
      await using a = await startNode('a')
      await using b = await startNode('b')
      const longer = { timeout: 2 * timeout }
      await elect(a, b, longer)
      process.kill(a.sentinel.pid, 'SIGSTOP')
      if (when === 'after') await b.event('suspect', { epoch: 1 })
      process.kill(b.sentinel.pid, 'SIGSTOP')
      await sleep(longer.timeout + timeout)
      process.kill(b.sentinel.pid, 'SIGCONT')
      await sleep(20)
      process.kill(a.sentinel.pid, 'SIGCONT')
      const next = await b.client.line(({ word }) => word === 'trust' || word === 'silent')
      expect(next.word).toBe('trust')
      // Its silence counts as ever.
      process.kill(a.sentinel.pid, 'SIGSTOP')
      await b.event('silent', { slot: 'ns/web-0', epoch: 1 })
      process.kill(a.sentinel.pid, 'SIGCONT')
    },
  )

  test('D8.overslept: a voter that is late time and again states the silence at last', async () => {
    await using a = await startNode('a')
    await using b = await startNode('b')
    await elect(a, b)
    process.kill(a.sentinel.pid, 'SIGSTOP')
    await b.event('suspect', { epoch: 1 })
    // It runs for too short a time to warn again.
    const states = () => b.client.lines.some(({ word }) => word === 'silent')
    for (let i = 0; i < 6 && !states(); i += 1) {
      process.kill(b.sentinel.pid, 'SIGSTOP')
      await sleep(timeout)
      process.kill(b.sentinel.pid, 'SIGCONT')
      await sleep(20)
    }
    expect(states()).toBe(true)
    process.kill(a.sentinel.pid, 'SIGCONT')
  })

  test('D8.flood: what has no tag of a peer takes no room in the buffer, from whatever address it comes', async () => {
    await using b = await startNode('b')
    const peer = { name: 'a', port: 1, run: 'a'.repeat(16) }
    /** Bytes that wait for the sentinel, which does not read. */
    const waiting = () => {
      const port = `:${b.port.toString(16).toUpperCase().padStart(4, '0')} `
      const line = readFileSync('/proc/net/udp6', 'utf8')
        .split('\n')
        .find(text => text.includes(port))
      return Number.parseInt(line?.trim().split(/\s+/)[4]?.split(':')[1] ?? '', 16)
    }
    /** Sends some datagrams. Each arrives before the call that sends it returns. */
    const flood = async (type: 'udp4' | 'udp6', head: Buffer) => {
      const to = type === 'udp4' ? '127.0.0.1' : '::1'
      const socket = createSocket(type)
      for (let i = 0; i < 20; i += 1) {
        const bytes = Buffer.concat([head, randomBytes(100)])
        await new Promise<unknown>(resolve => socket.send(bytes, b.port, to, resolve))
      }
      await new Promise<void>(resolve => socket.close(() => resolve()))
    }
    const takesRoom = async (...[type, head]: Parameters<typeof flood>) => {
      process.kill(b.sentinel.pid, 'SIGSTOP')
      await flood(type, head)
      const took = waiting() > 0
      process.kill(b.sentinel.pid, 'SIGCONT')
      await vi.waitFor(() => expect(waiting()).toBe(0))
      return took
    }
    const [other, later] = ['1'.repeat(64), '2'.repeat(64)]
    expect(await takesRoom('udp4', tagOf(key))).toBe(false)
    for (const [type, address] of [
      ['udp4', '127.0.0.1'],
      ['udp6', '::1'],
    ] as const) {
      expect(await b.ask('peer', { ...peer, address, key })).toBe('ok')
      expect(await b.ask('peer', { ...peer, name: 'c', address, key: other })).toBe('ok')
      expect(await takesRoom(type, tagOf(later))).toBe(false)
      expect(await takesRoom(type, Buffer.alloc(0))).toBe(false)
      expect(await takesRoom(type, tagOf(key))).toBe(true)
      expect(await takesRoom(type, tagOf(other))).toBe(true)
    }
    // The node has another key now.
    expect(await b.ask('peer', { ...peer, address: '127.0.0.1', key: later })).toBe('ok')
    expect(await takesRoom('udp4', tagOf(key))).toBe(false)
    expect(await takesRoom('udp4', tagOf(later))).toBe(true)
    expect(await b.ask('unpeer', { name: 'a' })).toBe('ok')
    expect(readFileSync(join(b.sentinel.directory, 's.votes'), 'utf8')).not.toContain(later)
    expect(await takesRoom('udp4', tagOf(later))).toBe(false)
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
    const hex = (value: number, bytes: number) => value.toString(16).padStart(2 * bytes, '0')
    const claim = (of: string, epoch: number, verdict: number, ms = 60_000) =>
      `${of}${hex(epoch, 4)}${hex(ms, 4)}${hex(verdict, 1)}`
    const claims = (verdicts: readonly number[]) =>
      [
        claim(slot, 2, verdicts[0] ?? 0),
        claim(slot, 1, verdicts[1] ?? 0),
        claim(slot, 2, verdicts[2] ?? 0, 60_001),
        claim('0'.repeat(16), 9, verdicts[3] ?? 0),
      ].join('')
    const frame = (type: number, from: string, to: string, process: string, sent: number, rest: string) =>
      `${tagOf(key).toString('hex')}${'01'}${hex(type, 1)}0004${from}${to}${process}${hex(sent, 8)}${rest}`
    const beat = (sent: number, process: string) => {
      const body = Buffer.from(frame(1, run, b.run, process, sent, claims([])), 'hex')
      return Buffer.concat([body, code(body)])
    }
    const answers: string[] = []
    socket.on('message', bytes => {
      expect(bytes.subarray(-32)).toEqual(code(bytes.subarray(0, -32)))
      answers.push(bytes.subarray(0, -32).toString('hex'))
    })
    /** Returns the answers to these beats: so many, and any more that come in the moment after them. */
    const send = async (count: number, ...beats: readonly Buffer[]) => {
      for (const bytes of beats) socket.send(bytes, b.port, '127.0.0.1')
      await vi.waitFor(() => expect(answers.length).toBeGreaterThanOrEqual(count))
      await new Promise(resolve => setTimeout(resolve, 100))
      return answers.splice(0)
    }
    // Before it has the number of this process, a beat may be from before it.
    const [first = ''] = await send(1, beat(9, '0'.repeat(16)))
    const process = first.slice(48, 64)
    expect(first).toBe(frame(2, b.run, run, process, 9, claims([1, 1, 1, 1])))
    // Answered, an earlier epoch, a longer time-out than that of the vote, and a slot without a vote.
    const answered = (sent: number) => frame(2, b.run, run, process, sent, claims([0, 2, 1, 1]))
    expect(await send(2, ...[5, 5, 4, 6].map(sent => beat(sent, process)))).toEqual([5, 6].map(answered))
    await new Promise<void>(resolve => socket.close(() => resolve()))
  })

  test('D8.whole: a file of promises that is not whole makes another voter of the sentinel', async () => {
    const directory = mkdtempSync(join(tmpdir(), 'sentinel-w-'))
    const file = join(directory, 's.votes')
    try {
      const runs = new Set<string>()
      for (const damage of [
        (text: string) => text,
        (text: string) => text.replace('end\n', ''),
        (text: string) => text.replace('epoch=1', 'epoch=x'),
        (text: string) => text.replace(/run (\w+) .*/, 'run $1 another-start'),
        undefined,
      ]) {
        await using b = await startNode('b', directory)
        runs.add(b.run)
        expect(await b.ask('vote', { slot: 's', epoch: 1, node: 'a', run: '1'.repeat(16), timeout })).toBe(
          'ok',
        )
        if (damage === undefined) rmSync(file)
        else writeFileSync(file, damage(readFileSync(file, 'utf8')))
      }
      await using last = await startNode('b', directory)
      runs.add(last.run)
      // Only the first one left all as it was.
      expect(runs.size).toBe(5)
    } finally {
      rmSync(directory, { recursive: true, force: true })
    }
  })

  test('D8.many: more primaries than fit into one datagram serve', async () => {
    await using a = await startNode('a')
    await using b = await startNode('b')
    await introduce(a, b)
    const names = Array.from({ length: 150 }, (_, at) => `pod-${at}`)
    // No vote is silent while the others are under way.
    for (const name of names) await b.ask('vote', vote(a, { slot: `ns/${name}`, timeout: 60_000 }))
    for (const name of names)
      await eventually(async () =>
        expect(await a.ask('primary', primary([voter(b)], { name, slot: `ns/${name}` }))).toBe('ok'),
      )
    for (const name of names) await a.event('serves', { name })
  })
})
