// Long because every case needs the same rogue peer.
import { createHash } from 'node:crypto'
import { readdir, rm } from 'node:fs/promises'
import type { ServerHttp2Stream } from 'node:http2'
import { join } from 'node:path'
import { zstdCompressSync } from 'node:zlib'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import type { SlotKey } from '../../api/slot-key.ts'
import { createRecordWriter, formatHeader, kinds, magic } from '../../checkpoint/delta/records.ts'
import type { GenerationFile, Manifest } from '../../checkpoint/manifest.ts'
import { createGenerationStore, type GenerationStore } from '../../checkpoint/store.ts'
import { manifestOf, slotKey } from '../../checkpoint/testing/generation.ts'
import { systemClock } from '../../kube/clock.ts'
import { silentLog } from '../../kube/log.ts'
import { seededRandom, systemRandom } from '../../kube/random.ts'
import { createPeerClient, type PeerClient } from './client.ts'
import { loadIdentity } from './identity.ts'
import { formatHead, parseRequest } from './protocol.ts'
import { memoryDirectory } from './testing/memory-directory.ts'
import { startRogueServer } from './testing/rogue-server.ts'

const never = new AbortController().signal
const budget = 1024 * 1024
const closing: (() => unknown)[] = []
let root: string
let store: GenerationStore
let client: PeerClient

beforeEach(async () => {
  root = await memoryDirectory('rogue')
  store = createGenerationStore({
    dir: join(root, 'memory'),
    budget,
    clock: systemClock,
    random: systemRandom,
  })
  await store.load()
  client = createPeerClient({
    identity: await loadIdentity(join(root, 'holder')),
    store,
    clock: systemClock,
    random: seededRandom(1),
    originFault: () => undefined,
    log: silentLog,
    silenceMs: 2_000,
    backoff: { initialMs: 1, maxMs: 1 },
  })
  closing.push(() => client.close())
})
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close()
  await rm(root, { recursive: true })
})

const sha256 = (content: string) => createHash('sha256').update(content).digest('hex')
const fileOf = (path: string, content: string): GenerationFile => ({
  path,
  size: content.length,
  sha256: sha256(content),
})
/** A manifest with these files, unchecked. */
const manifest = (files: readonly GenerationFile[], more: Partial<Manifest> = {}): Manifest => ({
  ...manifestOf(1),
  files,
  bytes: files.reduce((sum, { size }) => sum + size, 0),
  ...more,
})
const records = (contents: readonly string[]) => {
  const writer = createRecordWriter()
  for (const content of contents) {
    writer.literal(Buffer.from(content))
    writer.mark(kinds.endOfFile)
  }
  writer.mark(kinds.end)
  return Buffer.concat(writer.take(true))
}
const delta = (head: Buffer, body: Buffer) => zstdCompressSync(Buffer.concat([head, body]))
const whole = (files: Readonly<Record<string, string>>, more?: Partial<Manifest>) =>
  delta(
    formatHeader({
      manifest: manifest(
        Object.entries(files).map(([path, content]) => fileOf(path, content)),
        more,
      ),
    }),
    records(Object.values(files)),
  )

const head = (more: Partial<Parameters<typeof formatHead>[0]> = {}) => ({
  ':status': 200,
  ...formatHead({ version: { epoch: 1, generation: 1 }, base: undefined, ageMs: 1, ...more }),
})
const serve = async (answer: (stream: ServerHttp2Stream, path: string) => void) => {
  const server = await startRogueServer(await loadIdentity(join(root, 'source')), answer)
  closing.push(() => server.close())
  return server.peer
}
const send = (body: Buffer, headers: object = head()) =>
  serve(stream => {
    stream.respond({ ...headers })
    stream.end(body)
  })
const code = (...codes: string[]) =>
  expect.objectContaining({ code: expect.stringMatching(new RegExp(`^(${codes.join('|')})$`)) })

/** Names of all files on the disk except keys. */
const left = async () =>
  (await readdir(root, { recursive: true, withFileTypes: true }))
    .filter(entry => entry.isFile() && !entry.name.endsWith('.pem'))
    .map(({ name }) => name)

const pull = (peer: Parameters<PeerClient['pull']>[1], slot: SlotKey = slotKey) =>
  client.pull(slot, peer, 5, never)

test('the tools of these tests make a generation that is taken', async () => {
  const stored = await pull(await send(whole({ 'a/b': 'content', c: '' })))
  expect(stored.manifest.files.map(({ path }) => path)).toEqual(['a/b', 'c'])
})

describe('nothing is taken, and nothing is left of', () => {
  afterEach(async () => {
    expect(store.list()).toEqual([])
    expect(await left()).toEqual([])
  })

  test.each([
    '../escaped',
    'a/../../escaped',
    '..',
    '.',
    '',
    '/etc/escaped',
    'a//b',
    './a',
    'a/',
    'a\0b',
    'a\\b',
    'manifest.json',
    'arrival.json',
    'x'.repeat(300),
    `${'x/'.repeat(600)}x`,
  ])('a file that is called %j', async path => {
    await expect(pull(await send(whole({ [path]: 'content' })))).rejects.toEqual(code('BadManifest'))
  })

  test('a file that is the directory of another', async () => {
    await expect(pull(await send(whole({ a: 'x', 'a/b': 'y' })))).rejects.toEqual(code('BadManifest'))
  })

  test('two files of one name', async () => {
    const twice = [fileOf('a', 'x'), fileOf('a', 'x')]
    const body = delta(formatHeader({ manifest: manifest(twice) }), records(['x', 'x']))
    await expect(pull(await send(body))).rejects.toEqual(code('BadManifest'))
  })

  test('another slot', async () => {
    const slot = { ...slotKey, name: 'carts-7' }
    await expect(pull(await send(whole({ a: 'x' }, { slot })))).rejects.toEqual(
      code('Corrupt', 'BadManifest'),
    )
    await expect(
      pull(await send(whole({ a: 'x' }, { slot: { ...slotKey, namespace: '../x' } }))),
    ).rejects.toEqual(code('Corrupt', 'BadManifest'))
  })

  test('another generation than its head says', async () => {
    for (const more of [{ generation: 2 }, { epoch: 9 }])
      await expect(pull(await send(whole({ a: 'x' }, more)))).rejects.toEqual(code('Corrupt', 'BadManifest'))
  })

  test('more than there is room for, said in advance', async () => {
    const large = [{ path: 'a', size: 10 * budget, sha256: sha256('') }]
    const body = delta(formatHeader({ manifest: manifest(large) }), records(['x']))
    await expect(pull(await send(body))).rejects.toEqual(code('StoreFull'))
  })

  test('more than was said', async () => {
    const body = delta(
      formatHeader({ manifest: manifest([fileOf('a', 'x')]) }),
      records(['x'.repeat(budget * 4)]),
    )
    await expect(pull(await send(body))).rejects.toEqual(code('Corrupt'))
  })

  test('less than was said', async () => {
    const body = delta(formatHeader({ manifest: manifest([fileOf('a', 'xy')]) }), records(['x']))
    await expect(pull(await send(body))).rejects.toEqual(code('Corrupt'))
  })

  test('D10.hostile-peer: other content than was said', async () => {
    const body = delta(formatHeader({ manifest: manifest([fileOf('a', 'x')]) }), records(['y']))
    await expect(pull(await send(body))).rejects.toEqual(code('Corrupt'))
  })

  test('more files than were said', async () => {
    const body = delta(formatHeader({ manifest: manifest([fileOf('a', 'x')]) }), records(['x', 'y']))
    await expect(pull(await send(body))).rejects.toEqual(code('Corrupt'))
  })

  test('a header as long as it likes', async () => {
    const length = Buffer.from([0xff, 0xff, 0xff, 0xff])
    const body = delta(Buffer.concat([magic, length]), Buffer.alloc(budget))
    await expect(pull(await send(body))).rejects.toEqual(code('Corrupt'))
  })

  test('a few kilobytes that unpack into as many gigabytes as one likes', async () => {
    const bomb = Buffer.concat([
      zstdCompressSync(Buffer.concat([formatHeader({ manifest: manifest([fileOf('a', 'x')]) })])),
      ...Array<Buffer>(64).fill(zstdCompressSync(Buffer.alloc(16 * 1024 * 1024))),
    ])
    expect(bomb.length).toBeLessThan(256 * 1024)
    await expect(pull(await send(bomb))).rejects.toEqual(code('Corrupt'))
  })

  test('what is no delta', async () => {
    for (const body of [Buffer.alloc(0), Buffer.from('hello'), zstdCompressSync(Buffer.from('hello'))])
      await expect(pull(await send(body))).rejects.toEqual(code('Corrupt'))
  })

  test('a delta that is cut off, ended in good order or not', async () => {
    const body = whole({ a: 'x'.repeat(1000) })
    await expect(pull(await send(body.subarray(0, body.length - 3)))).rejects.toEqual(code('Corrupt'))
    const reset = await serve(stream => {
      stream.respond(head())
      stream.write(body.subarray(0, 10), () => stream.destroy(new Error('reset')))
    })
    await expect(pull(reset)).rejects.toEqual(code('PeerUnreachable'))
    const cut = await serve(stream => {
      stream.respond(head())
      stream.write(body.subarray(0, 10), () => stream.session?.destroy())
    })
    await expect(pull(cut)).rejects.toEqual(code('PeerUnreachable'))
  })

  test('a stream without end', async () => {
    const peer = await serve(stream => {
      stream.respond(head())
      // One frame of zstd whose blocks are all empty: it unpacks to nothing, so only its length gives it away.
      stream.write(Buffer.from('28b52ffd0000', 'hex'))
      const empty = Buffer.alloc(3 * 256 * 1024)
      const more = () => {
        if (!stream.destroyed) stream.write(empty, more)
      }
      more()
    })
    await expect(pull(peer)).rejects.toEqual(code('PeerMalformed'))
  })

  test('a difference to what was not offered', async () => {
    const base = { epoch: 1, generation: 3 }
    await expect(pull(await send(whole({ a: 'x' }), head({ base })))).rejects.toEqual(code('PeerMalformed'))
    const header = formatHeader({
      manifest: manifest([fileOf('a', 'x')]),
      base: { ...base, digest: sha256('x') },
    })
    await expect(pull(await send(delta(header, records(['x']))))).rejects.toEqual(code('DeltaBaseMissing'))
  })

  test('an answer without its head', async () => {
    for (const name of ['understudy-version', 'understudy-base', 'understudy-age-ms']) {
      const { [name]: _, ...rest } = head() as Record<string, unknown>
      await expect(pull(await send(whole({ a: 'x' }), rest))).rejects.toEqual(code('PeerMalformed'))
    }
  })

  test.each([200, 301, 404, 500])('an answer with status %i and nothing else', async status => {
    await expect(pull(await send(Buffer.alloc(0), { ':status': status }))).rejects.toEqual(
      code('PeerMalformed'),
    )
  })

  test('an answer that never comes', async () => {
    await expect(pull(await serve(() => {}))).rejects.toEqual(code('PeerSilent'))
  })
})

test('what is not newer than what we have is refused, also from the past', async () => {
  const good = await serve((stream, path) => {
    const version = { epoch: 2, generation: 5 }
    if (parseRequest(path)?.after) return
    stream.respond(head({ version }))
    stream.end(whole({ a: 'x' }, version))
  })
  const stored = await pull(good)
  for (const version of [
    { epoch: 2, generation: 5 },
    { epoch: 2, generation: 4 },
    { epoch: 1, generation: 99 },
  ])
    await expect(pull(await send(whole({ a: 'y' }, version), head({ version })))).rejects.toEqual(
      code('PeerMalformed'),
    )
  expect(store.list()).toEqual([stored])
})

test('after a difference that led nowhere the whole is asked for, until a generation has come', async () => {
  const bases: unknown[] = []
  const peer = await serve((stream, path) => {
    const { after, base } = parseRequest(path) ?? {}
    bases.push(base?.generation)
    const version = { epoch: 1, generation: (after?.generation ?? 0) + 1 }
    const broken = bases.length === 2
    stream.respond(head({ version, ...(broken ? { base } : {}) }))
    stream.end(broken ? zstdCompressSync(Buffer.from('nothing')) : whole({ a: 'x' }, version))
  })
  await pull(peer)
  await expect(pull(peer)).rejects.toEqual(code('Corrupt'))
  await pull(peer)
  await pull(peer)
  expect(bases).toEqual([undefined, 1, undefined, 2])
})

describe('D10.epoch: the slot cannot have', () => {
  afterEach(async () => {
    expect(store.list()).toEqual([])
    expect(await left()).toEqual([])
  })

  // In the store, such a generation would outrank those of the slot's next primary.
  test.each([
    ['a later epoch than that of its Lease', { epoch: 6, generation: 1 }],
    ['an epoch of a far future', { epoch: 999_999_999_999_999, generation: 1 }],
    ['a number that leaves no room for others', { epoch: 5, generation: 999_999_999_999_999 }],
  ])('%s: it is refused before a byte of it is read', async (_, version) => {
    await expect(pull(await send(whole({ a: 'x' }, version), head({ version })))).rejects.toEqual(
      code('GenerationImplausible'),
    )
  })

  test('what its head does not say: the manifest is held to the head', async () => {
    const version = { epoch: 6, generation: 1 }
    await expect(pull(await send(whole({ a: 'x' }, version), head()))).rejects.toEqual(code('BadManifest'))
  })
})
