// Long because each edit of an image has its cases on the same dump.
import { mkdtemp, readdir, readFile, rm, stat, truncate, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { BinaryReader, BinaryWriter, WireType } from '@bufbuild/protobuf/wire'
import fc from 'fast-check'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { isCheckpointError } from '../errors.ts'
import { addressWords } from './address-words.ts'
import { credentialsOf } from './credentials.ts'
import { forgetParent, moveAddress, newPidNamespace, rearmTimers } from './edits.ts'
import { joinEntries, largeImages, readImageBytes } from './image-file.ts'
import { listeningAddresses } from './listening.ts'
import { decode, encode } from './message.ts'
import { credsEntry, fileEntry } from './messages.ts'
import { descriptorsInFlight } from './queues.ts'
import { readStats } from './stats.ts'
import { tasksOf } from './tasks.ts'

let dir: string

beforeEach(async () => {
  dir = await mkdtemp(join(tmpdir(), 'images-'))
})
afterEach(() => rm(dir, { recursive: true }))

type Raw = readonly (readonly [number, number | bigint | Uint8Array | string])[]

/** Encodes a message in wire format, field by field, as CRIU does, independently of the definitions under test. */
function wire(fields: Raw): Uint8Array {
  const writer = new BinaryWriter()
  for (const [number, value] of fields)
    if (typeof value === 'number' || typeof value === 'bigint')
      writer.tag(number, WireType.Varint).uint64(BigInt(value))
    else if (typeof value === 'string') writer.tag(number, WireType.LengthDelimited).string(value)
    else writer.tag(number, WireType.LengthDelimited).bytes(value)
  return writer.finish()
}

function fieldsOf(bytes: Uint8Array): [number, WireType, string][] {
  const reader = new BinaryReader(bytes)
  const found: [number, WireType, string][] = []
  while (reader.pos < reader.len) {
    const [number, type] = reader.tag()
    found.push([number, type, Buffer.from(reader.skip(type, number)).toString('hex')])
  }
  return found
}

const kobjIds = (vm: number, pidNs: number) =>
  wire([...[vm, 1, 1, 1, pidNs, 2, 3, 4, 5, 6, 7].map((value, index) => [index + 1, value] as const)])

const creds = (uid: number, more: Raw = []) =>
  wire([
    ...Array.from({ length: 8 }, (_, index) => [index + 1, uid] as const),
    [11, 0xa80425fb],
    [11, 0x1],
    [13, 0],
    [14, 10],
    [14, 20],
    ...more,
  ])

const core = (pidNs: number, threadFields: Raw, state = 1) =>
  wire([
    [1, 1],
    [2, wire([[1, 99]])],
    [
      3,
      wire([
        [1, state],
        [2, 0],
        [6, 'app'],
      ]),
    ],
    [4, kobjIds(1, pidNs)],
    [5, wire([[1, 4096], [2, 24], ...threadFields])],
  ])

const put = (name: string, kind: Parameters<typeof joinEntries>[0], entries: Uint8Array[]) =>
  writeFile(join(dir, name), joinEntries(kind, entries))

const timerfd = (
  id: number,
  { ticks = 0, value = 0, interval = 0 }: { ticks?: number; value?: number; interval?: number },
) =>
  wire([
    [1, 17],
    [2, id],
    [
      12,
      wire([
        [1, id],
        [2, 2048],
        [3, wire([[1, 0]])],
        [4, 1],
        [5, ticks],
        [6, 0],
        [7, 0],
        [8, value],
        [9, 0],
        [10, interval],
      ]),
    ],
  ])

async function putDump({ rootPidNs = 1, threads = [1, 7] }: { rootPidNs?: number; threads?: number[] } = {}) {
  // Version 2, ids of CRIU itself, and fields that the definitions do not know.
  await put('inventory.img', 'inventory', [
    wire([
      [1, 2],
      [2, 1],
      [3, kobjIds(9, rootPidNs)],
      [4, 1],
      [5, 1],
      [8, 123456789],
      [13, 'run-id'],
    ]),
  ])
  await put('pstree.img', 'pstree', [
    wire([[1, 1], [2, 0], [3, 1], [4, 1], ...threads.map(tid => [5, tid] as const)]),
  ])
  for (const tid of threads)
    await put(`core-${tid}.img`, 'core', [
      core(1, [
        [10, creds(1000, [[18, 1]])],
        [11, 2],
      ]),
    ])
  await put('seccomp.img', 'seccomp', [wire([[1, wire([[2, 0]])]])])
  await put('mm-1.img', 'mm', [
    wire([
      [1, 4194304],
      [15, 1],
    ]),
  ])
}

test('the root of the dump gets a pid namespace of its own, once', async () => {
  await putDump()
  const before = await readFile(join(dir, 'inventory.img'))

  expect(await newPidNamespace(dir)).toBe(true)

  const after = await readFile(join(dir, 'inventory.img'))
  expect(after.length).toBe(before.length)
  expect(after.subarray(0, 4)).toEqual(before.subarray(0, 4))
  // One byte differs: the number of the namespace.
  const changed = [...after.keys()].filter(index => after[index] !== before[index])
  expect(changed).toHaveLength(1)
  expect(before[changed[0] ?? 0]).toBe(1)
  expect([0, 1, 2, 3, 4, 5, 6, 7, 9]).not.toContain(after[changed[0] ?? 0])
  expect((await readdir(dir)).filter(name => name.endsWith('.new'))).toEqual([])

  const written = await stat(join(dir, 'inventory.img'))
  expect(await newPidNamespace(dir)).toBe(false)
  expect((await stat(join(dir, 'inventory.img'))).ino).toBe(written.ino)
})

test('tasks that are in another pid namespace than CRIU was need no edit', async () => {
  await putDump({ rootPidNs: 77 })
  expect(await newPidNamespace(dir)).toBe(false)
})

test('periodic timers with an unread expiry run again, others stay as they are', async () => {
  const entries = [
    timerfd(1, { ticks: 3, interval: 50_000_000 }),
    timerfd(2, { ticks: 0, interval: 50_000_000 }),
    timerfd(3, { ticks: 1, interval: 0 }),
    timerfd(4, { ticks: 1, value: 5, interval: 50_000_000 }),
    wire([
      [1, 1],
      [2, 5],
      [3, wire([[1, 5]])],
    ]),
  ]
  await put('files.img', 'files', entries)

  expect(await rearmTimers(dir)).toBe(1)

  expect(await readFile(join(dir, 'files.img'))).toEqual(
    joinEntries('files', [timerfd(1, { ticks: 3, value: 1, interval: 50_000_000 }), ...entries.slice(1)]),
  )
  expect(await rearmTimers(dir)).toBe(0)
})

/** Fields in CRIU's order; the codec does not know the last one. */
const socket = (id: number, words: readonly number[]) =>
  wire([
    [1, 2],
    [2, id],
    [
      4,
      wire([
        ...Array.from({ length: 10 }, (_, at) => [at + 1, at + 1] as [number, number]),
        ...words.map(word => [11, word] as [number, number]),
        [18, 5],
      ]),
    ],
  ])

test.each([
  ['10.1.2.3', '10.9.8.7', [0x0302010a], [0x0708090a]],
  ['10.1.2.3', '10.9.8.7', [0, 0, 0xffff0000, 0x0302010a], [0, 0, 0xffff0000, 0x0708090a]],
  ['fd00::1', 'fd00::2:3', [0xfd, 0, 0, 0x01000000], [0xfd, 0, 0, 0x03000200]],
])('sockets that were bound to %s are bound to %s', async (from, to, before, after) => {
  const others = [socket(2, [0]), socket(3, [0x0100007f]), timerfd(4, { ticks: 0, interval: 1 })]
  await put('files.img', 'files', [socket(1, before), ...others])
  expect(await moveAddress(dir, from, to)).toBe(1)
  expect(await readFile(join(dir, 'files.img'))).toEqual(joinEntries('files', [socket(1, after), ...others]))
  expect(await moveAddress(dir, from, to)).toBe(0)
  expect(await moveAddress(dir, to, to)).toBe(0)
})

test('addresses at which the saved application listens, as they are in another pod', async () => {
  const tcp = (
    family: number,
    port: number,
    words: readonly number[],
    more: Raw = [],
    state = 10,
    type = 1,
  ) =>
    wire([
      [1, 2],
      [2, 1],
      [
        4,
        wire([
          [3, family],
          [4, type],
          [6, state],
          [7, port],
          ...words.map(word => [11, word] as const),
          ...more,
        ]),
      ],
    ])
  await put('files.img', 'files', [
    tcp(2, 80, [0]),
    tcp(2, 80, [0]),
    tcp(2, 81, [0x0302010a]),
    tcp(10, 82, [0, 0, 0, 0], [[15, 0]]),
    tcp(10, 83, [0, 0, 0, 0x01000000], [[15, 1]]),
    tcp(10, 84, [0, 0, 0xffff0000, 0x0302010a]),
    // Bound to a device; connected; of UDP; of no family that we know.
    tcp(2, 85, [0], [[17, 'eth0']]),
    tcp(2, 86, [0], [], 1),
    tcp(2, 87, [0], [], 10, 2),
    tcp(1, 88, [0]),
    timerfd(4, { ticks: 0, interval: 1 }),
  ])
  expect(await listeningAddresses(dir, { from: '10.1.2.3', to: '10.9.8.7' })).toEqual([
    { address: '0.0.0.0', port: 80, onlyIPv6: false },
    { address: '10.9.8.7', port: 81, onlyIPv6: false },
    { address: '0:0:0:0:0:0:0:0', port: 82, onlyIPv6: false },
    { address: '0:0:0:0:0:0:0:1', port: 83, onlyIPv6: true },
    { address: '0:0:0:0:0:ffff:a09:807', port: 84, onlyIPv6: false },
  ])
})

test.each(['', 'x', '1.2.3', 'fd00::1%eth0'])('%j is no address', text => {
  expect(addressWords(text)).toEqual([])
})

test('credentials of every thread, as /proc shows them', async () => {
  await putDump()
  await put('core-7.img', 'core', [core(1, [[10, creds(0, [[15, 'docker-default']])]])])
  const [first, second, ...more] = await credentialsOf(dir)
  expect(more).toEqual([])
  expect(first).toEqual({
    pid: 1,
    tid: 1,
    uids: { real: 1000, effective: 1000, saved: 1000, filesystem: 1000 },
    gids: { real: 1000, effective: 1000, saved: 1000, filesystem: 1000 },
    groups: [10, 20],
    capabilities: {
      inheritable: '0000000000000000',
      permitted: '0000000000000000',
      effective: '00000001a80425fb',
      bounding: '0000000000000000',
      ambient: '0000000000000000',
    },
    secureBits: 0,
    noNewPrivileges: true,
    seccomp: 'filter',
    dumpable: 1,
  })
  expect(second).toMatchObject({ pid: 1, tid: 7, noNewPrivileges: false, seccomp: 'disabled' })
  expect(second?.uids.real).toBe(0)
  expect(second?.lsmProfile).toBe('docker-default')
})

test('the filters that all threads have in common stand with the first of them', async () => {
  await putDump()
  await put('seccomp.img', 'seccomp', [wire([[1, wire([[3, 1]])]])])
  await put('core-7.img', 'core', [core(1, [[10, creds(0, [])]])])
  expect((await credentialsOf(dir)).map(({ tid, seccomp }) => [tid, seccomp])).toEqual([
    [1, 'filter'],
    [7, 'filter'],
  ])
})

test('a zombie has no credentials, a task that runs without them is refused', async () => {
  await putDump({ threads: [1] })
  await put('pstree.img', 'pstree', [
    wire([
      [1, 1],
      [2, 0],
      [3, 1],
      [4, 1],
      [5, 1],
    ]),
    wire([
      [1, 9],
      [2, 1],
      [3, 1],
      [4, 1],
      [5, 9],
    ]),
  ])
  await put('core-9.img', 'core', [core(1, [], 6)])
  expect((await credentialsOf(dir)).map(it => it.tid)).toEqual([1])
  await put('core-9.img', 'core', [core(1, [], 1)])
  await put('mm-9.img', 'mm', [wire([[1, 1]])])
  await expect(credentialsOf(dir)).rejects.toMatchObject({ code: 'BadImage' })
})

test('the tree of tasks', async () => {
  await putDump({ threads: [1, 7, 8] })
  expect(await tasksOf(dir)).toEqual([{ pid: 1, parent: 0, group: 1, session: 1, threads: [1, 7, 8] }])
})

test('times of dump and restore', async () => {
  await put('stats-dump', 'stats', [
    wire([
      [
        1,
        wire([
          [1, 11],
          [2, 22],
          [3, 33],
          [4, 44],
          [5, 55],
          [6, 66],
          [7, 77],
          [9, 0],
          [14, 88],
        ]),
      ],
    ]),
  ])
  await put('stats-restore', 'stats', [
    wire([
      [
        2,
        wire([
          [1, 0],
          [2, 0],
          [3, 5],
          [4, 6],
          [5, 7],
        ]),
      ],
    ]),
  ])
  expect(await readStats(dir, 'dump')).toEqual({
    freezing: 11,
    frozen: 22,
    memoryDump: 33,
    memoryWrite: 44,
    pagesScanned: 55,
    pagesWritten: 77,
    sharedPagesWritten: 88,
  })
  expect(await readStats(dir, 'restore')).toEqual({ forking: 5, restore: 6, pagesRestored: 7 })
  await put('stats-dump', 'stats', [wire([[2, wire([[3, 5]])]])])
  await expect(readStats(dir, 'dump')).rejects.toMatchObject({ code: 'BadImage' })
})

const anyValue = fc.oneof(fc.bigInt({ min: 0n, max: 2n ** 64n - 1n }), fc.uint8Array({ maxLength: 40 }))
const uint32 = fc.nat({ max: 2 ** 32 - 1 })

test('what a message has besides the known fields survives an edit, byte for byte and in its order', () => {
  const unknown = fc.array(fc.tuple(fc.integer({ min: 20, max: 2 ** 20 }), anyValue), { maxLength: 10 })
  const known = fc.tuple(uint32, fc.array(uint32, { maxLength: 3 }), fc.array(uint32, { maxLength: 40 }))
  fc.assert(
    fc.property(unknown, known, (unknownFields, [uid, capabilities, groups]) => {
      const bytes = wire([
        [1, uid],
        ...capabilities.map(word => [11, word] as const),
        ...groups.map(group => [14, group] as const),
        ...unknownFields,
      ])
      expect(Buffer.from(encode(credsEntry, decode(credsEntry, bytes)))).toEqual(Buffer.from(bytes))
    }),
  )
})

test('texts that are not UTF-8 survive an edit', async () => {
  await putDump()
  // The kernel cuts names of processes after 15 bytes, possibly within a character.
  const cut = Uint8Array.of(0x61, 0xc3)
  const texts = [[15, cut] as const, [16, cut] as const]
  await put('core-1.img', 'core', [
    core(1, [
      [8, 9],
      [10, creds(0, texts)],
      [13, cut],
    ]),
  ])
  expect(await forgetParent(dir)).toBe(true)
  const edited = await readFile(join(dir, 'core-1.img'))
  for (const text of [...texts, [13, cut] as const])
    expect(edited.includes(Buffer.from(wire([text])))).toBe(true)
})

test('fields that come in another order than their numbers are all still there', () => {
  const field = fc.tuple(fc.integer({ min: 30, max: 400 }), anyValue)
  fc.assert(
    fc.property(fc.array(field), fc.array(field), (before, after) => {
      const bytes = wire([...before, [2, 5], [12, wire([...before, [8, 3]])], ...after])
      const entry = decode(fileEntry, bytes)
      const again = encode(fileEntry, entry)
      expect(fieldsOf(again).filter(([number]) => number > 12)).toEqual(
        fieldsOf(bytes).filter(([number]) => number > 12),
      )
      expect(decode(fileEntry, again)).toEqual(entry)
    }),
  )
})

test('garbage is refused by name and breaks nothing', async () => {
  const names = [
    'inventory.img',
    'pstree.img',
    'core-1.img',
    'core-7.img',
    'mm-1.img',
    'files.img',
    'stats-dump',
  ]
  await putDump()
  await put('files.img', 'files', [timerfd(1, { ticks: 3, interval: 50_000_000 })])
  await put('stats-dump', 'stats', [wire([[1, wire([[1, 11]])]])])
  const good = new Map(
    await Promise.all(names.map(async name => [name, await readFile(join(dir, name))] as const)),
  )
  const damage = fc.record({
    name: fc.constantFrom(...names),
    at: fc.nat(200),
    bytes: fc.uint8Array({ minLength: 1, maxLength: 12 }),
    cut: fc.boolean(),
  })
  await fc.assert(
    fc.asyncProperty(fc.array(damage, { minLength: 1, maxLength: 4 }), async damages => {
      for (const [name, bytes] of good) await writeFile(join(dir, name), bytes)
      for (const { name, at, bytes, cut } of damages) {
        const content = Buffer.from(await readFile(join(dir, name)))
        const from = Math.min(at, content.length)
        content.set(bytes.subarray(0, content.length - from), from)
        await writeFile(join(dir, name), cut ? content.subarray(0, from) : content)
      }
      const outcomes = await Promise.allSettled([
        newPidNamespace(dir),
        rearmTimers(dir),
        credentialsOf(dir),
        tasksOf(dir),
        readStats(dir, 'dump'),
      ])
      for (const outcome of outcomes)
        if (outcome.status === 'rejected')
          expect(isCheckpointError(outcome.reason, 'BadImage'), String(outcome.reason)).toBe(true)
    }),
    { numRuns: 100 },
  )
}, 60_000)

test('D10.hostile: an image of 1 GiB is not read, whichever it is, but for memory itself', async () => {
  const names = [
    'sk-queues.img',
    'files.img',
    'core-7.img',
    'pagemap-7.img',
    'pagemap-shmem-1.img',
    'mm-7.img',
  ]
  for (const name of [...names, 'pages-1.img', 'ghost-file-1.img']) {
    await writeFile(join(dir, name), '')
    await truncate(join(dir, name), 2 ** 30)
  }
  expect((await largeImages(dir)).sort()).toEqual(names.sort())
  for (const name of names)
    await expect(readImageBytes(dir, name)).rejects.toThrow(`${name} has 1073741824 bytes`)
  await expect(descriptorsInFlight(dir)).rejects.toMatchObject({ code: 'BadImage' })
})
