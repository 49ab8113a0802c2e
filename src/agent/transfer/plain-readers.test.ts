import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import { afterEach, expect, test } from 'vitest'
import { createGenerationStore } from '../../checkpoint/store.ts'
import { manifestOf, putFiles, slotKey } from '../../checkpoint/testing/generation.ts'
import { createFakeClock, systemClock } from '../../kube/clock.ts'
import { silentLog } from '../../kube/log.ts'
import { systemRandom } from '../../kube/random.ts'
import { connectPeer } from './connection.ts'
import { loadIdentity } from './identity.ts'
import { createPlainReaders } from './plain-readers.ts'
import { formatRequest } from './protocol.ts'
import { createPeerServer } from './server.ts'
import { memoryDirectory } from './testing/memory-directory.ts'

test('agents of the version before count as readers for five minutes after each request', async () => {
  const clock = createFakeClock()
  const readers = createPlainReaders(clock)
  expect(readers.any).toBe(false)
  readers.note()
  await clock.advance(5 * 60_000 - 1)
  expect(readers.any).toBe(true)
  readers.note()
  await clock.advance(5 * 60_000 - 1)
  expect(readers.any).toBe(true)
  await clock.advance(1)
  expect(readers.any).toBe(false)
})

const closing: (() => unknown)[] = []
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close()
})

test('D7.digests: an agent of the version before is never sent what it cannot check, and makes the source write the old form', async () => {
  const root = await memoryDirectory('plain-readers')
  closing.push(() => rm(root, { recursive: true }))
  const readers = createPlainReaders(systemClock)
  const store = createGenerationStore({
    ...{ dir: join(root, 'store'), budget: 1 << 26, clock: systemClock, random: systemRandom },
    digestByPage: () => !readers.any,
  })
  await store.load()
  const [source, holder] = [await loadIdentity(join(root, 'a')), await loadIdentity(join(root, 'b'))]
  const server = await createPeerServer({
    ...{ identity: source, host: '127.0.0.1', port: 0, store, clock: systemClock, log: silentLog },
    nodeOf: fingerprint => (fingerprint === holder.fingerprint ? 'node-b' : undefined),
    mayRead: () => true,
    waitMs: 20_000,
    onPlainReader: readers.note,
  })
  closing.push(() => server.close())
  const save = async (generation: number) => {
    const draft = await store.begin(slotKey, generation)
    await putFiles(draft.dir, { 'pages-1.img': Buffer.alloc(300_000, generation) })
    const { manifest } = await draft.commit(manifestOf(generation))
    server.announce(slotKey)
    return manifest.files[0]?.byPage
  }
  expect(await save(1)).toBe(true)

  const peer = { address: `127.0.0.1:${server.port}`, fingerprint: source.fingerprint }
  const session = await connectPeer(peer, holder, systemClock, undefined)
  closing.push(() => session.destroy())
  const path = formatRequest({ slot: slotKey, after: undefined, base: undefined })
  const answer = new Promise(resolve => {
    const stream = session.request({ ':path': path, ':method': 'GET' }, { endStream: true })
    stream.on('response', headers => resolve([headers[':status'], headers['understudy-version']]))
    stream.on('error', resolve)
    stream.resume()
  })
  await expect.poll(() => readers.any).toBe(true)
  expect(await save(2)).toBeUndefined()
  expect(await answer).toEqual([200, '1.2'])
})
