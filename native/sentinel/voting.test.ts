import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { eventually } from '../../test/support/eventually.ts'
import type { Values } from './testing/sentinel.ts'
import {
  api,
  apiRun,
  introduce,
  key,
  type Node,
  primary,
  startNode,
  timeout,
  vote,
  voter,
} from './testing/voters.ts'

const why = process.getuid?.() === 0 ? undefined : '(needs root: it serves nobody else)'

/** For tests in which this process does something else for a part of the time-out. */
const long = { timeout: 6_000 }
/** For tests that wait for the time-out. */
const twice = { timeout: 2 * timeout }
/** For votes that are never silent. */
const lasting = { timeout: 60_000 }

/** Has a primary acknowledged by its voters, which may answer too late. */
const acknowledge = (node: Node, values: Values) =>
  eventually(async () => expect(await node.ask('primary', values)).toBe('ok'))

describe.skipIf(why !== undefined)(`votes ${why ?? ''}`, () => {
  test('D8.answers: a primary serves while enough of its voters answer', async () => {
    await using a = await startNode('a')
    await using b = await startNode('b')
    await introduce(a, b)
    const acknowledged = a.ask('primary', primary([api, voter(b)], long))
    // A voter that would not state its silence does not answer it either.
    await new Promise(resolve => setTimeout(resolve, timeout / 3))
    expect(a.client.lines.filter(({ word }) => word !== 'alone')).toEqual([])
    expect(await b.ask('vote', vote(a, long))).toBe('ok')
    expect(await acknowledged).toBe('ok')
    await a.event('serves', { name: 'pod', epoch: 1 })
    process.kill(b.sentinel.pid, 'SIGSTOP')
    await a.event('stops', { name: 'pod', epoch: 1 })
    // The API server is enough, too: it is one of two.
    expect(await a.answered()).toBe('ok')
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
        expect(await b.ask('vote', vote(a, twice))).toBe('ok')
        await acknowledge(a, primary([api, voter(b)], twice))
        await a.event('serves', { epoch: 1 })
        process.kill(a.sentinel.pid, 'SIGSTOP')
        await b.event('silent', { slot: 'ns/web-0', epoch: 1 })
        process.kill(a.sentinel.pid, 'SIGCONT')
        await a.event('stops', { epoch: 1 })
      }
      await using again = await startNode('b', directory)
      expect(readFileSync(join(directory, 's.votes'), 'utf8')).toContain(`run ${again.run} `)
      // It knows that by itself, and not after another time-out.
      expect(again.client.lines.filter(({ word }) => word === 'silent')).toHaveLength(1)
      await introduce(a, again)
      // No request brings the vote back without the statement.
      expect(await again.ask('unvote', { slot: 'ns/web-0' })).toBe('ok')
      expect(await again.ask('vote', vote(a, twice))).toBe('ok')
      await new Promise(resolve => setTimeout(resolve, twice.timeout / 3))
      await again.ask('vote', vote(a, { ...lasting, epoch: 2 }))
      await acknowledge(a, primary([api, voter(again)], { epoch: 2 }))
      await a.event('serves', { epoch: 2 })
      expect(
        a.client.lines.filter(({ word, values }) => word === 'serves' && values['epoch'] === '1'),
      ).toEqual([])
    } finally {
      rmSync(directory, { recursive: true, force: true })
    }
  })

  test('D8.denied: an epoch that the operator has revoked gets no answers, and the statement follows', async () => {
    const directory = mkdtempSync(join(tmpdir(), 'sentinel-b-'))
    try {
      await using a = await startNode('a')
      {
        await using b = await startNode('b', directory)
        await introduce(a, b)
        await b.ask('vote', vote(a, twice))
        await acknowledge(a, primary([api, voter(b)], twice))
        await a.event('serves', { epoch: 1 })
        expect(await b.ask('vote', vote(a, { ...twice, deny: 1 }))).toBe('ok')
        await a.event('stops', { epoch: 1 })
      }
      await using again = await startNode('b', directory)
      await introduce(a, again)
      await again.event('silent', { slot: 'ns/web-0', epoch: 1 })
      expect(
        a.client.lines.filter(({ word, values }) => word === 'serves' && values['epoch'] === '1'),
      ).toEqual([])
    } finally {
      rmSync(directory, { recursive: true, force: true })
    }
  })

  test('statements of slots that are gone take no room for ever, and the port can change', async () => {
    const directory = mkdtempSync(join(tmpdir(), 'sentinel-b-'))
    try {
      await using a = await startNode('a')
      await using b = await startNode('b', directory)
      await introduce(a, b)
      const slots = Array.from({ length: 1_030 }, (_, at) => `ns/gone-${at}`)
      for (const slot of slots) await b.ask('vote', vote(a, { slot, timeout: 12 }))
      await b.event('silent', { slot: 'ns/gone-1029' })
      for (const slot of slots) expect(await b.ask('unvote', { slot })).toBe('ok')
      const kept = readFileSync(join(directory, 's.votes'), 'utf8').split('\n')
      expect(kept.filter(line => line.includes(' vote '))).toHaveLength(1_024)
      // Those of the slots that are gone for the shortest time stay.
      expect(kept.some(line => line.includes('slot=ns/gone-1029 '))).toBe(true)
      const another = await b.client.ask('heartbeats', { port: 20_987 })
      expect(another.values['port']).toBe('20987')
    } finally {
      rmSync(directory, { recursive: true, force: true })
    }
  })

  test('D8.later: who knows a later epoch answers no earlier one', async () => {
    await using a = await startNode('a')
    await using b = await startNode('b')
    await introduce(a, b)
    await b.ask('vote', vote(a, { ...lasting, epoch: 2 }))
    await b.ask('vote', vote(a, { ...lasting, slot: 'ns/web-1' }))
    const first = a.ask('primary', primary([voter(b)], { ...lasting, epoch: 1 }))
    await acknowledge(a, primary([voter(b)], { name: 'other', slot: 'ns/web-1' }))
    await a.event('serves', { name: 'other' })
    expect(await b.ask('vote', vote(a, { epoch: 1 }))).toBe('refused older')
    await acknowledge(a, primary([voter(b)], { epoch: 2 }))
    await a.event('serves', { name: 'pod', epoch: 2 })
    expect(await first).toBe('refused replaced')
    expect(
      a.client.lines.filter(({ values }) => values['name'] === 'pod' && values['epoch'] === '1'),
    ).toEqual([])
  })

  test('D8.joint: while the voters change, a primary needs both sets', async () => {
    await using a = await startNode('a')
    await using b = await startNode('b')
    await using c = await startNode('c')
    await introduce(a, b, c)
    await b.ask('vote', vote(a, long))
    await acknowledge(a, primary([voter(b)], long))
    await a.event('serves', {})
    const both = a.ask('primary', primary([voter(b)], { ...long, version: 2, next: [voter(c)] }))
    // It serves by the first version for as long as the second one would stop it.
    await new Promise(resolve => setTimeout(resolve, timeout / 2))
    expect(a.client.lines.filter(({ word }) => word === 'stops')).toEqual([])
    await c.ask('vote', vote(a, long))
    expect(await both).toBe('ok')
    await c.ask('unvote', { slot: 'ns/web-0' })
    await a.event('stops', {})
    await c.ask('vote', vote(a, long))
    await a.event('serves', {})
    expect(await a.ask('primary', primary([voter(b)], { ...long, version: 1 }))).toBe('refused older')
    expect(await a.ask('primary', primary([voter(b)], { ...long, version: 2 }))).toBe('refused bad-version')
    expect(await a.ask('primary', primary([voter(c)], { ...long, version: 3 }))).toBe('ok')
    expect(await a.ask('primary', primary([voter(c)], { version: 3, timeout: 2 * long.timeout }))).toBe(
      'refused bad-timeout',
    )
    // Nor does it come back by way of an end, under another name, or after a restart.
    expect(await a.ask('unprimary', { name: 'pod' })).toBe('ok')
    for (const name of ['pod', 'other'])
      expect(await a.ask('primary', primary([voter(b)], { ...long, name, version: 2 }))).toBe('refused older')
    expect(await a.ask('primary', primary([voter(c)], { ...long, version: 3 }))).toBe('ok')
  })

  test('D8.pending: no request has two replies, and the end of a guard is one', async () => {
    await using node = await startNode('a')
    const first = node.ask('primary', primary([api]))
    const second = node.ask('primary', primary([api], { version: 2 }))
    expect(await first).toBe('refused replaced')
    expect(await node.ask('unprimary', { name: 'pod' })).toBe('ok')
    expect(await second).toBe('refused ended')
  })

  test('D8.alone: only a primary whose answers run out asks for the API server, and only if that votes', async () => {
    await using a = await startNode('a')
    await using b = await startNode('b')
    await introduce(a, b)
    const alone = () =>
      a.client.lines.filter(({ word }) => word === 'alone').map(({ values }) => values['name'])
    for (const name of ['pod', 'other'])
      expect(await b.ask('vote', vote(a, { ...long, slot: `ns/${name}` }))).toBe('ok')
    const other = primary([voter(b)], { ...long, name: 'other', slot: 'ns/other' })
    await acknowledge(a, primary([api, voter(b)], { ...long, slot: 'ns/pod' }))
    await acknowledge(a, other)
    // Until the first answer it has none, and while a busy machine is late.
    await eventually(async () => {
      while (alone().length > 0) await a.event('alone', { name: 'pod' })
      await new Promise(resolve => setTimeout(resolve, timeout))
      expect(alone()).toEqual([])
    })
    process.kill(b.sentinel.pid, 'SIGSTOP')
    await a.event('alone', { name: 'pod' })
    expect(a.client.lines.filter(({ word }) => word === 'stops')).toEqual([])
    // An answer of an earlier voter does not count.
    expect(await a.answered({ run: 'b'.repeat(16) })).toBe('ok')
    await a.event('stops', { name: 'pod' })
    await a.event('alone', { name: 'pod' })
    await a.event('alone', { name: 'pod' })
    await a.client.ask('votes')
    await a.event('alone', { name: 'pod' })
    expect(alone()).not.toContain('other')
    process.kill(b.sentinel.pid, 'SIGCONT')
    await a.event('serves', { name: 'pod' })
  })

  test('D8.runs: a voter that was started with its machine is another voter', async () => {
    await using a = await startNode('a')
    await using b = await startNode('b')
    await introduce(a, b)
    const before = `b/${'0'.repeat(15)}1`
    for (const slot of ['ns/web-0', 'ns/web-1']) await b.ask('vote', vote(a, { ...lasting, slot }))
    const refused = a.ask('primary', primary([before]))
    await acknowledge(a, primary([voter(b)], { name: 'other', slot: 'ns/web-1' }))
    await a.event('serves', { name: 'other' })
    expect(await refused).toBe('refused no-answers')
    expect(a.client.lines.filter(({ values }) => values['name'] === 'pod')).toEqual([])
  })

  test('D8.runs: a node that claims the run of another one does not take its place', async () => {
    await using a = await startNode('a')
    await using b = await startNode('b')
    const { run, port } = b
    const claims = { name: 'c', address: '127.0.0.1', port: 1, run, key: 'c'.repeat(64) }
    expect(await a.ask('peer', claims)).toBe('ok')
    await introduce(a, b)
    expect(await a.ask('peer', { ...claims, port })).toBe('ok')
    await b.ask('vote', vote(a, lasting))
    await acknowledge(a, primary([voter(b)]))
    await a.event('serves', {})
  })

  test('D8.one: a voter has one primary and one time-out for an epoch', async () => {
    await using a = await startNode('a')
    const run = '1'.repeat(16)
    expect(await a.ask('vote', vote({ name: 'b', run }))).toBe('ok')
    expect(await a.ask('vote', vote({ name: 'b', run }))).toBe('ok')
    expect(await a.ask('vote', vote({ name: 'c', run }))).toBe('refused another-primary')
    expect(await a.ask('vote', vote({ name: 'b', run: '2'.repeat(16) }))).toBe('refused another-primary')
    expect(await a.ask('vote', vote({ name: 'b', run }, { timeout: 1 }))).toBe('refused bad-timeout')
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
    ['unknown-key', 'vote', { slot: 's', epoch: 1, node: 'a', run: '0'.repeat(16), timeout, refused: 1 }],
    ['unknown-key', 'primary', primary([api], { gone: 1 })],
    ['bad-slot', 'vote', { slot: 's'.repeat(257), epoch: 1, node: 'a', run: '0'.repeat(16), timeout }],
    ['bad-slot', 'primary', primary([api], { slot: 's'.repeat(257) })],
    ['bad-voter', 'primary', primary(['api-server'])],
    ['bad-cgroup', 'primary', primary([api], { cgroup: '../outside' })],
    ['bad-netns', 'primary', primary([api], { netns: 0, start: 1 })],
    ['missing-start', 'primary', primary([api], { netns: 1 })],
    ['bad-time', 'answered', { name: 'pod', epoch: 1, run: apiRun, sent: String(2n ** 62n) }],
    ['bad-run', 'answered', { name: 'pod', epoch: 1, run: 'a', sent: 1 }],
  ])('D8.refused: %s', async (reason, verb, values) => {
    await using a = await startNode('a')
    expect(await a.ask(verb, values)).toBe(`refused ${reason}`)
  })
})
