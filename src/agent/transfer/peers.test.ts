// Long because every case needs the same pair of nodes with keys and stores.
import { randomBytes } from 'node:crypto'
import { readFile, rm } from 'node:fs/promises'
import { type AddressInfo, connect as connectTcp, createServer, type Socket } from 'node:net'
import { join } from 'node:path'
import { connect as connectTls } from 'node:tls'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import type { SlotLease } from '../../api/slot-lease.ts'
import { applyDelta, encodeDelta } from '../../checkpoint/delta.ts'
import type { Manifest } from '../../checkpoint/manifest.ts'
import { createSigner, signerOf } from '../../checkpoint/signature.ts'
import { createGenerationStore, type GenerationStore } from '../../checkpoint/store.ts'
import { manifestOf, putFiles, slotKey } from '../../checkpoint/testing/generation.ts'
import { createFakeClock, type FakeClock, systemClock } from '../../kube/clock.ts'
import { silentLog } from '../../kube/log.ts'
import { seededRandom, systemRandom } from '../../kube/random.ts'
import { originFault } from '../../slot/decide/origin.ts'
import { fetchNewest } from '../tasks/fetch.ts'
import { createPeerClient, type PeerClient, type PeerClientOptions } from './client.ts'
import type { Encode } from './codec.ts'
import type { Peer } from './connection.ts'
import { type Identity, loadIdentity } from './identity.ts'
import { pinnedTls } from './pinned.ts'
import type { ReceivedGeneration } from './receive.ts'
import { createPeerServer, type PeerServerOptions } from './server.ts'
import { memoryDirectory } from './testing/memory-directory.ts'

const closing: (() => unknown)[] = []
let root: string
let source: GenerationStore
let identities: Record<'source' | 'holder' | 'stranger', Identity>

const storeAt = async (name: string, budget = 64 * 1024 * 1024) => {
  const store = createGenerationStore({
    dir: join(root, name),
    budget,
    clock: systemClock,
    random: systemRandom,
  })
  await store.load()
  return store
}

beforeEach(async () => {
  root = await memoryDirectory('peers')
  source = await storeAt('source')
  identities = {
    source: await loadIdentity(join(root, 'id-source')),
    holder: await loadIdentity(join(root, 'id-holder')),
    stranger: await loadIdentity(join(root, 'id-stranger')),
  }
})
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close()
  await rm(root, { recursive: true })
})

const never = new AbortController().signal
/** Epoch of the slot's Lease. */
const epoch = 5

const commit = async (generation: number, files: Record<string, Uint8Array | string>, epoch = 1) => {
  const draft = await source.begin(slotKey, generation)
  await putFiles(draft.dir, files)
  return draft.commit(manifestOf(generation, { epoch }))
}

/** A slot that the server refuses to every node. */
const refused = 'carts-999'

const startServer = async (options: Partial<PeerServerOptions> = {}) => {
  const server = await createPeerServer({
    identity: identities.source,
    host: '127.0.0.1',
    port: 0,
    store: source,
    nodeOf: fingerprint => (fingerprint === identities.holder.fingerprint ? 'node-b' : undefined),
    mayRead: (node, slot) => node === 'node-b' && slot.name !== refused,
    clock: systemClock,
    log: silentLog,
    ...options,
  })
  closing.push(() => server.close())
  const peer = { address: `127.0.0.1:${server.port}`, fingerprint: identities.source.fingerprint }
  return { server, peer }
}

const startClient = async (options: Partial<PeerClientOptions> = {}) => {
  const received: ReceivedGeneration[] = []
  const store = await storeAt('holder')
  const client = createPeerClient({
    identity: identities.holder,
    store,
    clock: systemClock,
    random: seededRandom(1),
    originFault: () => undefined,
    log: silentLog,
    onReceived: it => void received.push(it),
    ...options,
  })
  closing.push(() => client.close())
  return { client, store, received }
}

/** Resolves when the peer has answered a request; it has read every earlier request of this client by then. */
const untilAnswered = (client: PeerClient, peer: Peer) =>
  expect(client.pull({ ...slotKey, name: refused }, peer, epoch, never)).rejects.toEqual(code('PeerRefused'))

describe('a generation goes from node to node', () => {
  test('D7.handed-over: not before the node that comes first has it', async () => {
    let isLater = true
    const asked: string[] = []
    const { peer } = await startServer({
      isLater(node, { name }) {
        asked.push(`${node} ${name}`)
        return isLater
      },
    })
    const { client, store } = await startClient()
    await commit(1, { 'shm.tar': 'one' })
    const pulled = client.pull(slotKey, peer, epoch, never)
    await vi.waitFor(() => expect(asked.length).toBeGreaterThan(2))
    expect(new Set(asked)).toEqual(new Set([`node-b ${slotKey.name}`]))
    expect(store.latest(slotKey)).toBeUndefined()
    isLater = false
    expect((await pulled).manifest.generation).toBe(1)
  })

  test('as a whole, then as the difference', async () => {
    const { peer, server } = await startServer()
    const { client, store, received } = await startClient()
    const big = randomBytes(300_000)
    await commit(1, { 'containers/app/criu/pages-1.img': big, 'shm.tar': 'one' })

    let answers = 0
    const first = await client.pull(slotKey, peer, epoch, never, {
      onAnswer: () => {
        answers += 1
      },
    })
    expect(answers).toBe(1)
    expect(first.manifest.generation).toBe(1)
    expect(await readFile(join(first.dir, 'containers/app/criu/pages-1.img'))).toEqual(big)
    expect(store.latest(slotKey)).toBe(first)

    const next = client.pull(slotKey, peer, epoch, never)
    await commit(2, { 'containers/app/criu/pages-1.img': big, 'shm.tar': 'two' })
    server.announce(slotKey)
    const second = await next
    expect(second.manifest.generation).toBe(2)
    expect(await readFile(join(second.dir, 'shm.tar'), 'utf8')).toBe('two')
    expect(await readFile(join(second.dir, 'containers/app/criu/pages-1.img'))).toEqual(big)

    expect(received.map(({ delta }) => delta)).toEqual([false, true])
    expect(received[0]?.bytes).toBeGreaterThan(300_000)
    expect(received[1]?.bytes).toBeLessThan(10_000)
  })

  test('its age goes with it', async () => {
    const { peer } = await startServer()
    const { client } = await startClient()
    const draft = await source.begin(slotKey, 1)
    await putFiles(draft.dir, { a: 'a' })
    // The pod was stopped a minute ago.
    await draft.commit(manifestOf(1), { stoppedAt: systemClock.monotonic() - 60_000 })
    const stored = await client.pull(slotKey, peer, epoch, never)
    expect(stored.pipelineMs).toBeGreaterThanOrEqual(60_000)
    expect(stored.pipelineMs).toBeLessThan(90_000)
  })

  test('only newer ones, and the newest of those', async () => {
    const { peer } = await startServer()
    const { client } = await startClient()
    await commit(7, { a: '7' })
    expect((await client.pull(slotKey, peer, epoch, never)).manifest.generation).toBe(7)
    await commit(8, { a: '8' })
    await commit(9, { a: '9' })
    expect((await client.pull(slotKey, peer, epoch, never)).manifest.generation).toBe(9)
    // A later epoch continues the numbers of the generations on its node.
    await commit(8, { a: 'later' }, 2)
    const later = await client.pull(slotKey, peer, epoch, never)
    expect(await readFile(join(later.dir, 'a'), 'utf8')).toBe('later')
  })

  test('as a whole when the source has the base no more', async () => {
    const { peer } = await startServer()
    const { client, received } = await startClient()
    await commit(1, { a: '1' })
    await client.pull(slotKey, peer, epoch, never)
    await commit(2, { a: '2' })
    await source.prune(slotKey, 1)
    await client.pull(slotKey, peer, epoch, never)
    expect(received.map(({ delta }) => delta)).toEqual([false, false])
  })

  test('a wait ends and begins again until there is something', async () => {
    const answered: number[] = []
    const { peer, server } = await startServer({ waitMs: 10 })
    const asked = Promise.withResolvers<void>()
    const { client } = await startClient({
      store: new Proxy(await storeAt('counted'), {
        get(target, name) {
          if (name === 'latest' && answered.push(1) === 3) asked.resolve()
          return Reflect.get(target, name)
        },
      }),
    })
    const pulled = client.pull(slotKey, peer, epoch, never)
    await asked.promise
    await commit(1, { a: 'a' })
    server.announce(slotKey)
    expect((await pulled).manifest.generation).toBe(1)
  })

  test('many slots over one connection', async () => {
    const { peer, server } = await startServer()
    const { client, store } = await startClient()
    const slots = Array.from({ length: 150 }, (_, slot) => ({ ...slotKey, name: `carts-${slot}` }))
    const pulled = Promise.all(slots.map(slot => client.pull(slot, peer, epoch, never)))
    for (const slot of slots) {
      const draft = await source.begin(slot, 1)
      await putFiles(draft.dir, { a: `${slot.name}` })
      await draft.commit(manifestOf(1, { slot }))
      server.announce(slot)
    }
    await pulled
    expect(store.list()).toHaveLength(150)
    await untilAnswered(client, peer)
  })
})

const held = () => {
  const reached = Promise.withResolvers<void>()
  const go = Promise.withResolvers<void>()
  let running = 0
  let most = 0
  const encode: Encode = async function* (base, next) {
    running += 1
    most = Math.max(most, running)
    try {
      const chunks = encodeDelta(base, next)[Symbol.asyncIterator]()
      yield (await chunks.next()).value
      reached.resolve()
      await go.promise
      for (let chunk = await chunks.next(); !chunk.done; chunk = await chunks.next()) yield chunk.value
    } finally {
      running -= 1
    }
  }
  return { encode, reached: reached.promise, go: go.resolve, running: () => running, most: () => most }
}

describe('while a generation is read', () => {
  test('it stays where it is, and its base, too', async () => {
    const { client } = await startClient()
    const first = await startServer()
    await commit(1, { a: '1', b: 'same' })
    await client.pull(slotKey, first.peer, epoch, never)
    await commit(2, { a: '2', b: 'same' })
    const hold = held()
    const { peer } = await startServer({ encode: hold.encode })
    const pulled = client.pull(slotKey, peer, epoch, never)
    await hold.reached
    await source.remove(slotKey)
    expect(source.latest(slotKey)).toBeUndefined()
    hold.go()
    expect(await readFile(join((await pulled).dir, 'a'), 'utf8')).toBe('2')
    // No reader is left: the room is free again.
    await expect.poll(() => source.bytes).toBe(0)
  })

  test('others wait for their turn and get the newest then', async () => {
    const hold = held()
    const { peer } = await startServer({ encode: hold.encode, transfers: { forAll: 8, forEach: 1 } })
    const { client } = await startClient()
    const other = { ...slotKey, name: 'carts-1' }
    const put = async (generation: number) => {
      const draft = await source.begin(other, generation)
      await putFiles(draft.dir, { a: `${generation}` })
      await draft.commit(manifestOf(generation, { slot: other }))
    }
    await commit(1, { a: 'a' })
    const first = client.pull(slotKey, peer, epoch, never)
    await hold.reached
    await put(1)
    const second = client.pull(other, peer, epoch, never)
    await untilAnswered(client, peer)
    await put(2)
    await source.prune(other, 1)
    hold.go()
    expect((await first).manifest.generation).toBe(1)
    expect((await second).manifest.generation).toBe(2)
    expect(hold.most()).toBe(1)
  })

  test('D10.turns: a namespace leaves one place to others', async () => {
    const hold = held()
    const { peer } = await startServer({ encode: hold.encode, transfers: { forAll: 2, forEach: 9 } })
    const { client } = await startClient()
    const [second, other] = [
      { ...slotKey, name: 'carts-1' },
      { ...slotKey, namespace: 'another' },
    ]
    for (const slot of [slotKey, second, other]) {
      const draft = await source.begin(slot, 1)
      await putFiles(draft.dir, { a: 'a' })
      await draft.commit(manifestOf(1, { slot }))
    }
    const pulls = [client.pull(slotKey, peer, epoch, never), client.pull(second, peer, epoch, never)]
    await hold.reached
    await untilAnswered(client, peer)
    expect(hold.most()).toBe(1)
    pulls.push(client.pull(other, peer, epoch, never))
    await expect.poll(hold.most).toBe(2)
    hold.go()
    await Promise.all(pulls)
    expect(hold.most()).toBe(2)
  })

  const isUnread = () =>
    source.unread(slotKey, AbortSignal.timeout(20)).then(
      () => true,
      () => false,
    )

  /** Returns a receiver that was sent a whole generation, and has not confirmed it to the source. */
  const sentAll = async (options?: Partial<PeerServerOptions>) => {
    const { peer } = await startServer(options)
    const { client } = await startClient()
    await commit(1, { a: 'a' })
    await client.pull(slotKey, peer, epoch, never)
    expect(await isUnread()).toBe(false)
    return { peer, client }
  }

  test('it counts as read until the receiver has it in its store, but not for ever', async () => {
    const [settleMs, over] = [12_345, Promise.withResolvers<void>()]
    const sleep = (ms: number, signal: AbortSignal) =>
      ms === settleMs ? over.promise : systemClock.sleep(ms, signal)
    await sentAll({ settleMs, clock: { ...systemClock, sleep } })
    over.resolve()
    await expect.poll(isUnread).toBe(true)
  })

  test('that is told by its next question', async () => {
    const { peer, client } = await sentAll()
    const stop = new AbortController()
    const next = client.pull(slotKey, peer, epoch, stop.signal)
    await expect.poll(isUnread).toBe(true)
    stop.abort(new Error('enough'))
    await expect(next).rejects.toThrow('enough')
  })

  test('or by the end of its connection', async () => {
    const { client } = await sentAll()
    client.close()
    await expect.poll(isUnread).toBe(true)
  })

  test('a receiver that goes away ends it', async () => {
    const hold = held()
    const { peer } = await startServer({ encode: hold.encode })
    const clock = createFakeClock()
    const { client, store } = await startClient({ clock })
    await commit(1, { a: 'a' })
    const stop = new AbortController()
    const pulled = client.pull(slotKey, peer, epoch, stop.signal)
    await hold.reached
    stop.abort(new Error('enough'))
    await expect(pulled).rejects.toThrow('enough')
    // Until now another task could have joined it.
    await clock.advance(3_000)
    hold.go()
    await expect.poll(hold.running).toBe(0)
    await source.remove(slotKey)
    await expect.poll(() => source.bytes).toBe(0)
    expect(store.list()).toEqual([])
  })

  test('D7.joined: what arrives when its task ends arrives for the next task, once', async () => {
    const hold = held()
    const { peer } = await startServer({ encode: hold.encode })
    const { client, store, received } = await startClient()
    const { manifest } = await commit(1, { a: 'a' })
    const stop = new AbortController()
    const first = client.pull(slotKey, peer, epoch, stop.signal)
    await hold.reached
    stop.abort(new Error('another pod was called'))
    await expect(first).rejects.toThrow('another pod was called')
    const next = client.pull(slotKey, peer, epoch, never, { atLeast: manifest })
    hold.go()
    expect((await next).manifest).toEqual(manifest)
    expect([received.length, store.list().length]).toEqual([1, 1])
    await expect.poll(hold.running).toBe(0)
  })

  test('D7.joined: each task gets the error of a corrupt generation, and the next request is for a whole one', async () => {
    const hold = held()
    const bases: (number | undefined)[] = []
    let isSpoiled = true
    const { peer } = await startServer({
      encode: async function* (base, next, options) {
        bases.push(base?.manifest.generation)
        if (base === undefined || !isSpoiled) return yield* encodeDelta(base, next, options)
        yield* hold.encode(base, next, options)
        yield Buffer.from('and more')
      },
    })
    const { client, store } = await startClient({ backoff: { initialMs: 1, maxMs: 1 } })
    await commit(1, { a: 'a' })
    await client.pull(slotKey, peer, epoch, never)
    const { manifest } = await commit(2, { a: 'b' })
    const stop = new AbortController()
    const first = client.pull(slotKey, peer, epoch, stop.signal)
    await hold.reached
    const second = client.pull(slotKey, peer, epoch, never)
    stop.abort(new Error('enough'))
    await expect(first).rejects.toThrow('enough')
    const refused = expect(second).rejects.toEqual(code('Corrupt'))
    hold.go()
    await refused
    isSpoiled = false
    expect((await client.pull(slotKey, peer, epoch, never)).manifest).toEqual(manifest)
    expect(bases).toEqual([undefined, 1, undefined])
    expect(store.latest(slotKey)?.manifest.generation).toBe(2)
  })

  test('D7.joined: it may take any time, and the room of an older one is free before a newer one arrives', async () => {
    const hold = held()
    let isFirst = true
    const { peer } = await startServer({
      encode: (...given) => {
        const held = isFirst
        isFirst = false
        return held ? hold.encode(...given) : encodeDelta(...given)
      },
    })
    const size = 1_000_000
    // There is room for one of them.
    const small = await storeAt('small', 1.5 * size)
    const { client } = await startClient({ store: small })
    await commit(1, { a: randomBytes(size) })
    const stop = new AbortController()
    const first = client.pull(slotKey, peer, epoch, stop.signal)
    await hold.reached
    stop.abort(new Error('enough'))
    await expect(first).rejects.toThrow('enough')
    const { manifest } = await commit(2, { a: randomBytes(size) })
    expect((await client.pull(slotKey, peer, epoch, never, { atLeast: manifest })).manifest).toEqual(manifest)
    hold.go()
  })

  test('D7.joined: a task that joins gives it as much time as it needs', async () => {
    const hold = held()
    const { peer } = await startServer({ encode: hold.encode })
    const clock = createFakeClock()
    const { client, store } = await startClient({ clock, silenceMs: 600_000 })
    const { manifest } = await commit(1, { a: 'a' })
    const stop = new AbortController()
    const first = client.pull(slotKey, peer, epoch, stop.signal)
    await hold.reached
    stop.abort(new Error('a pod was called'))
    await expect(first).rejects.toThrow('a pod was called')
    const work = {
      ...{ store, peers: client, announce: () => undefined, clock, log: silentLog },
      metrics: { received: () => undefined },
    }
    const { epoch: of, generation, takenAt } = manifest
    const others = [{ ...peer, epoch: of, generation, takenAt: Date.parse(takenAt) }]
    const fetched = fetchNewest(work, { ...slotKey, epoch } as SlotLease, others, never)
    await clock.advance(60_000)
    hold.go()
    expect((await fetched)?.manifest).toEqual(manifest)
  })

  test('D7.joined: two tasks at the same time get the same one, and either may leave', async () => {
    const hold = held()
    const { peer } = await startServer({ encode: hold.encode })
    const { client, received } = await startClient()
    await commit(1, { a: 'a' })
    const leaves = new AbortController()
    const first = client.pull(slotKey, peer, epoch, never)
    await hold.reached
    const [second, third] = [leaves.signal, never].map(signal => client.pull(slotKey, peer, epoch, signal))
    leaves.abort(new Error('enough'))
    await expect(second).rejects.toThrow('enough')
    hold.go()
    expect(await third).toBe(await first)
    expect(received).toHaveLength(1)
  })

  test('D7.joined: a task that needs the newest one does not stop at the one that arrives', async () => {
    const hold = held()
    const { peer } = await startServer({ encode: hold.encode })
    const { client, store } = await startClient()
    await commit(1, { a: 'a' })
    client.pull(slotKey, peer, epoch, never).catch(() => undefined)
    await hold.reached
    const { manifest } = await commit(2, { a: 'b' })
    const work = {
      ...{ store, peers: client, announce: () => undefined, clock: systemClock, log: silentLog },
      metrics: { received: () => undefined },
    }
    const { epoch: of, generation, takenAt } = manifest
    const others = [{ ...peer, epoch: of, generation, takenAt: Date.parse(takenAt) }]
    const newest = fetchNewest(work, { ...slotKey, epoch } as SlotLease, others, never)
    hold.go()
    expect((await newest)?.manifest).toEqual(manifest)
  })
})

const code = (code: string) => expect.objectContaining({ code })

describe('only those who may', () => {
  test('D10.transit: a stranger gets no further than the handshake', async () => {
    const { peer } = await startServer()
    await commit(1, { a: 'a' })
    const { client } = await startClient({ identity: identities.stranger })
    await expect(client.pull(slotKey, peer, epoch, never)).rejects.toEqual(code('PeerUnreachable'))
  })

  test('nobody without a certificate', async () => {
    const { peer } = await startServer()
    const socket = connectTls({
      port: Number(peer.address.split(':')[1]),
      host: '127.0.0.1',
      rejectUnauthorized: false,
      ALPNProtocols: ['h2'],
    })
    socket.on('error', () => {})
    expect(await new Promise(resolve => socket.on('close', resolve).resume())).toBeDefined()
    expect(socket.bytesRead).toBeLessThan(4096)
  })

  test('D10.transit: nothing older than TLS 1.3', async () => {
    const { peer } = await startServer()
    const socket = connectTls({
      ...pinnedTls(identities.holder),
      minVersion: 'TLSv1.2',
      maxVersion: 'TLSv1.2',
      port: Number(peer.address.split(':')[1]),
      host: '127.0.0.1',
    })
    await expect(new Promise((_, reject) => socket.on('error', reject))).rejects.toThrow(/version/)
  })

  test('a server with another key is asked nothing', async () => {
    const { peer } = await startServer({ identity: identities.stranger, nodeOf: () => 'node-b' })
    const { client } = await startClient()
    await commit(1, { a: 'a' })
    await expect(client.pull(slotKey, peer, epoch, never)).rejects.toEqual(code('PeerKeyDiffers'))
  })

  test('D10.peer-lease MP-10: what a node may read is asked at every request', async () => {
    let allowed = false
    let known = true
    const { peer } = await startServer({
      mayRead: (node, { name }) => allowed && node === 'node-b' && name === slotKey.name,
      nodeOf: () => (known ? 'node-b' : undefined),
    })
    const { client } = await startClient()
    await commit(1, { a: 'a' })
    await expect(client.pull(slotKey, peer, epoch, never)).rejects.toEqual(code('PeerRefused'))
    allowed = true
    expect((await client.pull(slotKey, peer, epoch, never)).manifest.generation).toBe(1)
    await expect(client.pull({ ...slotKey, name: 'carts-1' }, peer, epoch, never)).rejects.toEqual(
      code('PeerRefused'),
    )
    // The connection stays open from before.
    known = false
    await expect(client.pull(slotKey, peer, epoch, never)).rejects.toEqual(code('PeerRefused'))
  })

  describe('D10.peers MP-10: source and target stand in the Lease, over TLS with pinned keys', () => {
    const lease: SlotLease = {
      ...slotKey,
      group: 'carts',
      holder: { name: 'p', uid: manifestOf(1).source.podUid },
      ...{ epoch: 1, node: manifestOf(1).source.node, ip: undefined, heir: undefined, holders: ['node-b'] },
    }
    const pullWith = async (now: SlotLease | undefined) => {
      const { peer } = await startServer()
      const { client, store } = await startClient({
        originFault: manifest => originFault({ ...manifest, signer: signerOf(manifest) }, now),
      })
      await commit(1, { a: 'a' })
      return { pulled: client.pull(slotKey, peer, epoch, never), store }
    }

    test('what the Lease names is taken', async () => {
      const { pulled } = await pullWith(lease)
      expect((await pulled).manifest.generation).toBe(1)
    })

    test.each<[string, SlotLease | undefined]>([
      ['without a Lease', undefined],
      ['of a pod that the Lease does not name', { ...lease, holder: { name: 'p', uid: 'another' } }],
      ['of a node that the Lease does not name', { ...lease, node: 'another' }],
      ['of an epoch that has not begun', { ...lease, epoch: 0 }],
      ['of another namespace', { ...lease, namespace: 'another' }],
      ['of another incarnation of the slot', { ...lease, incarnation: 'ffffffff' }],
    ])('memory %s is not kept', async (_, now) => {
      const { pulled, store } = await pullWith(now)
      await expect(pulled).rejects.toEqual(code('PeerForeign'))
      expect(store.latest(slotKey)).toBeUndefined()
      expect(store.bytes).toBe(0)
    })

    describe('signed by the node that saved it', () => {
      const signed = (identity: Identity) => ({ sign: createSigner(identity.key) })
      const save = async (
        options: { readonly sign?: (manifest: Manifest) => Manifest },
        over: Partial<Manifest> = {},
      ) => {
        const draft = await source.begin(slotKey, 1)
        await putFiles(draft.dir, { a: 'a' })
        return draft.commit(manifestOf(1, over), options)
      }
      const pullAt = async (over: Partial<SlotLease>) => {
        const { peer } = await startServer()
        const signers = [{ epoch: 1, fingerprint: identities.source.fingerprint }]
        const now = { ...lease, signers, ...over }
        const { client, store } = await startClient({
          originFault: manifest => originFault({ ...manifest, signer: signerOf(manifest) }, now),
        })
        return { pulled: client.pull(slotKey, peer, epoch, never), store }
      }

      test('it is kept, and its signature with it', async () => {
        await save(signed(identities.source))
        const { pulled } = await pullAt({})
        expect(signerOf((await pulled).manifest)).toBe(identities.source.fingerprint)
      })

      const later = (fingerprint: string) => ({
        epoch: 2,
        signers: [
          { epoch: 2, fingerprint: 'f'.repeat(64) },
          { epoch: 1, fingerprint },
        ],
      })

      test('also in the epoch after, by whoever has it', async () => {
        await save(signed(identities.source))
        const { pulled } = await pullAt(later(identities.source.fingerprint))
        expect((await pulled).manifest.epoch).toBe(1)
      })

      test.each<
        [string, (manifest: Manifest) => Manifest, (source: string) => Partial<SlotLease>, string, RegExp]
      >([
        ['not signed', manifest => manifest, () => ({}), 'PeerForeign', /not signed/],
        ['not signed, of the epoch before', manifest => manifest, later, 'PeerForeign', /not signed/],
        [
          'signed by another node',
          manifest => createSigner(identities.stranger.key)(manifest),
          later,
          'PeerForeign',
          /signed with the key/,
        ],
        [
          'of an epoch whose signer is not known',
          manifest => createSigner(identities.source.key)(manifest),
          source => ({ epoch: 2, signers: [{ epoch: 2, fingerprint: source }] }),
          'PeerForeign',
          /does not name the signer/,
        ],
        [
          'with a signature of another generation',
          manifest => ({ ...createSigner(identities.source.key)(manifest), frozenSeconds: 2 }),
          () => ({}),
          'BadManifest',
          /differs from its signed text/,
        ],
        [
          'with a signature of another incarnation of the slot',
          manifest => {
            const other = { ...manifest, slot: { ...manifest.slot, incarnation: 'ffffffff' } }
            const { signed } = createSigner(identities.source.key)(other)
            return { ...manifest, ...(signed && { signed }) }
          },
          () => ({}),
          'BadManifest',
          /differs from its signed text/,
        ],
      ])('it is refused when it is %s', async (_, sign, over, fault, message) => {
        await save({ sign })
        const { pulled, store } = await pullAt(over(identities.source.fingerprint))
        const error: unknown = await pulled.catch((error: unknown) => error)
        expect(error).toMatchObject({ code: fault, message: expect.stringMatching(message) })
        expect(store.bytes).toBe(0)
      })
    })

    test('an old generation that is sent again does not replace a newer one', async () => {
      const { peer } = await startServer({ store: { ...source, latest: () => old, open: () => old } })
      const { client, store } = await startClient({
        originFault: manifest => originFault({ ...manifest, signer: signerOf(manifest) }, lease),
      })
      const old = await commit(1, { a: 'old' })
      const draft = await store.begin(slotKey, 2)
      await putFiles(draft.dir, { a: 'new' })
      await draft.commit(manifestOf(2, { epoch: 1 }))
      const stop = new AbortController()
      const pulled = client.pull(slotKey, peer, epoch, stop.signal)
      await new Promise(resolve => setTimeout(resolve, 300))
      stop.abort(new Error('enough'))
      await expect(pulled).rejects.toThrow()
      expect(store.latest(slotKey)?.manifest.generation).toBe(2)
    })
  })

  test('who says nothing is not kept waiting for: 2,000 silent connections keep no peer out', async () => {
    const { peer, server } = await startServer({ strangers: { forAll: 64, forEach: 16 } })
    const silent: Socket[] = []
    closing.push(() => {
      for (const socket of silent) socket.destroy()
    })
    let gone = 0
    for (let i = 0; i < 2_000; i += 1)
      await new Promise<void>(resolve => {
        const socket = connectTcp({ port: server.port, host: '127.0.0.1' }, resolve)
        socket.on('error', () => undefined)
        socket.once('close', () => {
          gone += 1
        })
        silent.push(socket)
      })
    await vi.waitFor(() => expect(gone).toBeGreaterThanOrEqual(2_000 - 16))
    const { client } = await startClient()
    await untilAnswered(client, peer)
  })

  test('where no report has an address not even a handshake is begun from there', async () => {
    const { peer } = await startServer({ mayConnect: address => address !== '127.0.0.1' })
    const { client } = await startClient()
    await expect(client.pull(slotKey, peer, epoch, never)).rejects.toEqual(code('PeerUnreachable'))
    const { peer: other } = await startServer({
      mayConnect: address => address === '127.0.0.3',
      nodeOf: (_, address) => (address === '127.0.0.3' ? 'node-b' : undefined),
    })
    const { client: bound } = await startClient({ localAddress: '127.0.0.3' })
    await untilAnswered(bound, other)
  })

  test('not those who were struck off while they waited', async () => {
    let allowed = true
    const { peer, server } = await startServer({ mayRead: (_, { name }) => allowed && name !== refused })
    const { client } = await startClient()
    const pulled = client.pull(slotKey, peer, epoch, never)
    await untilAnswered(client, peer)
    allowed = false
    await commit(1, { a: 'a' })
    server.announce(slotKey)
    await expect(pulled).rejects.toEqual(code('PeerRefused'))
  })
})

describe('what breaks', () => {
  /** Starts a proxy to the server that a test can cut. */
  const startWire = async (
    address: string,
    onBytes: (total: number, cut: () => void, hold: () => void) => void,
  ) => {
    const sockets = new Set<Socket>()
    const wire = createServer(near => {
      const far = connectTcp(Number(address.split(':')[1]), '127.0.0.1')
      let total = 0
      const cut = () => {
        near.resetAndDestroy()
        far.destroy()
      }
      // As if the machine had lost its power: nothing arrives any more, and nothing says so.
      const hold = () => {
        near.unpipe().pause()
        far.pause()
      }
      for (const socket of [near, far]) {
        sockets.add(socket)
        socket.on('error', () => {})
      }
      near.pipe(far)
      far.on('data', chunk => {
        total += chunk.length
        near.write(chunk)
        onBytes(total, cut, hold)
      })
    })
    await new Promise<void>(resolve => wire.listen(0, '127.0.0.1', resolve))
    closing.push(() => {
      for (const socket of sockets) socket.destroy()
      return new Promise(resolve => wire.close(resolve))
    })
    return `127.0.0.1:${(wire.address() as AddressInfo).port}`
  }

  test('D7.broken: a connection cut in the middle leaves nothing behind, and the next pull gets it', async () => {
    const { peer } = await startServer()
    const { client, store } = await startClient({ backoff: { initialMs: 1, maxMs: 2 } })
    let cuts = 0
    const address = await startWire(peer.address, (total, cut) => {
      if (total > 200_000 && cuts < 3) {
        cuts += 1
        cut()
      }
    })
    await commit(1, { 'pages-1.img': randomBytes(1_000_000) })
    for (let attempt = 0; attempt < 3; attempt += 1) {
      await expect(client.pull(slotKey, { ...peer, address }, epoch, never)).rejects.toEqual(
        code('PeerUnreachable'),
      )
      expect(store.list()).toEqual([])
    }
    expect((await client.pull(slotKey, { ...peer, address }, epoch, never)).manifest.bytes).toBe(1_000_000)
  })

  /** A second by this clock, with enough turns of the event loop for an answer to a ping. */
  const oneSecond = async (clock: FakeClock) => {
    await clock.advance(1_000)
    // The bytes are real, and a busy machine needs time for them.
    for (let turn = 0; turn < 100; turn += 1) await systemClock.sleep(1)
  }

  test('D7.silent-source: a source that dies in the middle costs five seconds, and the next one gives', async () => {
    const { peer } = await startServer()
    const second = await startServer({ identity: identities.stranger })
    const clock = createFakeClock()
    const { client, store } = await startClient({ clock })
    const dead = Promise.withResolvers<void>()
    const address = await startWire(peer.address, (total, _, hold) => {
      if (total < 200_000) return
      hold()
      dead.resolve()
    })
    await commit(1, { 'pages-1.img': randomBytes(1_000_000) })
    const told = { epoch: 1, generation: 1, takenAt: 0 }
    const others = [
      { ...peer, address, ...told },
      { address: second.peer.address, fingerprint: identities.stranger.fingerprint, ...told },
    ]
    const metrics = { received: () => undefined }
    const work = { store, peers: client, clock, log: silentLog, metrics, announce: () => undefined }
    const lease = { ...slotKey, epoch } as SlotLease
    const fetched = fetchNewest(work, lease, others, never)
    await dead.promise
    const diedAt = clock.monotonic()
    let seconds: number | undefined
    const over = fetched.finally(() => {
      seconds = (clock.monotonic() - diedAt) / 1_000
    })
    while (seconds === undefined) await oneSecond(clock)
    expect((await over)?.manifest.bytes).toBe(1_000_000)
    // Five, and those in which the bytes that were on their way arrived and the second source answered.
    expect(seconds).toBeLessThan(20)
  })

  test('D7.silent-source: a source that compares for half a minute before its next byte is not dead', async () => {
    const hold = held()
    const { peer } = await startServer({ encode: hold.encode })
    const clock = createFakeClock()
    const { client } = await startClient({ clock, silenceMs: 60_000 })
    await commit(1, { a: 'a' })
    const answered = Promise.withResolvers<void>()
    const pulled = client.pull(slotKey, peer, epoch, never, { onAnswer: answered.resolve })
    await answered.promise
    for (let second = 0; second < 30; second += 1) await oneSecond(clock)
    hold.go()
    expect((await pulled).manifest.generation).toBe(1)
  })

  test('nobody at the address, or no address', async () => {
    const { peer, server } = await startServer()
    await server.close()
    const { client } = await startClient({ backoff: { initialMs: 1, maxMs: 2 } })
    await expect(client.pull(slotKey, peer, epoch, never)).rejects.toEqual(code('PeerUnreachable'))
    for (const address of ['', 'host', 'host:0', 'host:99999', '::1:7', 'user@host:1', '[::1]'])
      await expect(client.pull(slotKey, { ...peer, address }, epoch, never)).rejects.toEqual(
        code('PeerUnreachable'),
      )
  })

  test('an encoder that fails makes no generation', async () => {
    const { peer } = await startServer({
      encode: async function* (base, next) {
        for await (const chunk of encodeDelta(base, next)) {
          yield chunk
          throw new Error('disk')
        }
      },
    })
    const { client, store } = await startClient()
    await commit(1, { a: 'a' })
    await expect(client.pull(slotKey, peer, epoch, never)).rejects.toEqual(code('PeerUnreachable'))
    expect(store.list()).toEqual([])
  })

  test('a source that falls silent in the middle is given up', async () => {
    const hold = held()
    const { peer } = await startServer({ encode: hold.encode })
    const { client, store } = await startClient({ silenceMs: 50 })
    await commit(1, { a: 'a' })
    await expect(client.pull(slotKey, peer, epoch, never)).rejects.toEqual(code('PeerSilent'))
    expect(store.list()).toEqual([])
    hold.go()
  })

  test('a source that waits is not silent', async () => {
    const { peer, server } = await startServer({ signOfLifeMs: 5 })
    const { client } = await startClient({ silenceMs: 5_000 })
    const pulled = client.pull(slotKey, peer, epoch, never)
    await systemClock.sleep(6_000)
    await commit(1, { a: 'a' })
    server.announce(slotKey)
    expect((await pulled).manifest.generation).toBe(1)
  })

  test('a receiver that takes nothing is given up, and its turn is the next one’s', async () => {
    const { peer } = await startServer({ silenceMs: 1_000, transfers: { forAll: 1, forEach: 1 } })
    const stuck = Promise.withResolvers<never>()
    const { client } = await startClient({
      apply: async (stream, base, draft) => {
        if (draft.slot.name === 'carts-1') return applyDelta(stream, base, draft)
        await stream[Symbol.asyncIterator]().next()
        return stuck.promise
      },
    })
    // Larger than the window.
    await commit(1, { 'pages-1.img': randomBytes(24 * 1024 * 1024) })
    const other = { ...slotKey, name: 'carts-1' }
    const draft = await source.begin(other, 1)
    await putFiles(draft.dir, { a: 'a' })
    await draft.commit(manifestOf(1, { slot: other }))
    const stop = new AbortController()
    const first = client.pull(slotKey, peer, epoch, stop.signal)
    const second = await client.pull(other, peer, epoch, never)
    expect(second.manifest.slot.name).toBe('carts-1')
    stuck.reject(new Error('freed'))
    await expect(first).rejects.toThrow()
  })
})

/** A clock on which waits of a minute last until they are woken: only an unused connection waits so long. */
function clockOfIdle() {
  const idle: { wake: () => void; signal: AbortSignal | undefined }[] = []
  const clock = {
    ...systemClock,
    sleep: (ms: number, signal?: AbortSignal) =>
      ms === 60_000
        ? new Promise<void>((wake, reject) => {
            signal?.addEventListener('abort', () => reject(signal.reason))
            idle.push({ wake, signal })
          })
        : systemClock.sleep(ms, signal),
  }
  return { idle, clock }
}

test('a connection that nobody uses any more is closed, and the next question opens another', async () => {
  const { peer } = await startServer()
  await commit(1, { a: 'a' })
  const { idle, clock } = clockOfIdle()
  const { client } = await startClient({ clock })
  await untilAnswered(client, peer)
  await client.pull(slotKey, peer, epoch, never)
  // The connection was used again in time.
  expect(idle.map(({ signal }) => signal?.aborted)).toEqual([true, false])
  idle.at(-1)?.wake()
  await expect.poll(() => idle.at(-1)?.signal?.aborted).toBe(true)
  await untilAnswered(client, peer)
  expect(idle).toHaveLength(3)
})

test('D7.grant: `reach` keeps a connection open for later requests, and ends when the connection does', async () => {
  const { peer, server } = await startServer()
  await commit(1, { a: 'a' })
  const { idle, clock } = clockOfIdle()
  const { client } = await startClient({ clock })
  const stop = new AbortController()
  const [first, second] = [client.reach(peer, stop.signal), client.reach(peer, never)]
  await untilAnswered(client, peer)
  await client.pull(slotKey, peer, epoch, never)
  stop.abort(new Error('another heir'))
  await expect(first).rejects.toThrow('another heir')
  // It was in use all the time.
  expect(idle).toEqual([])
  await server.close()
  await second
  await expect(client.reach(peer, never)).rejects.toEqual(code('PeerUnreachable'))
})
