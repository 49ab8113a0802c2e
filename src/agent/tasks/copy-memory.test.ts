import { generateKeyPairSync } from 'node:crypto'
import { readdirSync, statSync } from 'node:fs'
import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { cloneHolder } from '../../api/clone-of.ts'
import { parseSlotLease, slotLeaseBody } from '../../api/slot-lease.ts'
import { createSigner, signerOf } from '../../checkpoint/signature.ts'
import { createGenerationStore, type GenerationStore } from '../../checkpoint/store.ts'
import { manifestOf, putFiles, slotKey } from '../../checkpoint/testing/generation.ts'
import { createFakeClock } from '../../kube/clock.ts'
import { silentLog } from '../../kube/log.ts'
import { seededRandom } from '../../kube/random.ts'
import { originFault } from '../../slot/decide/origin.ts'
import { desiredTasks } from '../decide/desired-tasks.ts'
import { kept, lease, nameOf, snapshot } from '../testing/fake/snapshots.ts'
import { copyMemory } from './copy-memory.ts'

let root: string
let store: GenerationStore
const key = generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey.export({
  type: 'pkcs8',
  format: 'pem',
})
const sign = createSigner(key.toString())

beforeEach(async () => {
  root = await mkdtemp(join(tmpdir(), 'copies-'))
  store = createGenerationStore({
    ...{ dir: root, budget: 1 << 20, clock: createFakeClock(), random: seededRandom(1) },
  })
})
afterEach(() => rm(root, { recursive: true }))

const { name, incarnation, namespace } = slotKey
const from = { name, incarnation, epoch: 1, generation: 3, node: 'a' }
const clone = lease({
  ...{ namespace, name: 'clones-0' },
  ...{ holder: { name: 'source', uid: cloneHolder('uid-source') }, node: 'a', kept: ['a'], cloneOf: from },
})

async function save(generation: number, content = 'memory'): Promise<void> {
  const draft = await store.begin(slotKey, generation)
  await putFiles(draft.dir, { 'app/criu/pages-1.img': content, 'app/root.tar': 'files' })
  await draft.commit(manifestOf(generation, { final: true }), { sign })
}

function copy(signal = new AbortController().signal, told: string[] = []): Promise<readonly string[]> {
  const work = {
    ...{ store, sign, log: silentLog },
    announce: () => told.push('announced'),
    progress: { succeeded: () => told.push('room') },
  }
  const task = { type: 'copyMemory', key: '', version: '', lease: clone, from } as const
  return copyMemory(work, task, signal).then(() => told)
}

describe('MP-28: a copy of the memory of another slot', () => {
  it('is the first generation of its slot, as if the pod that the Lease names had saved it here', async () => {
    await save(3)
    await save(4, 'newest')
    // A failure before says nothing about a try that has room.
    expect(await copy()).toEqual(['room', 'announced'])
    const stored = store.latest(clone)
    if (stored === undefined) throw new Error('no copy')
    const { manifest, dir } = stored
    expect(manifest).toMatchObject({
      ...{ slot: { namespace, name: 'clones-0' }, epoch: clone.epoch, generation: 1 },
      source: { pod: clone.holder.name, podUid: clone.holder.uid, node: 'a' },
    })
    expect(manifest).not.toHaveProperty('final')
    expect(await readFile(join(dir, 'app/criu/pages-1.img'), 'utf8')).toBe('newest')
    expect(await readFile(join(dir, 'app/root.tar'), 'utf8')).toBe('files')
    const { slot, epoch, source } = manifest
    expect(originFault({ slot, epoch, source, signer: signerOf(manifest) }, clone)).toBeUndefined()
    // The other slot has what it had, and no reader is left.
    expect(store.latest(slotKey)?.manifest.generation).toBe(4)
    await store.unread(slotKey, AbortSignal.timeout(1_000))
  })

  it('shares no file with it: generations are written over', async () => {
    await save(3)
    await copy()
    await store.remove(slotKey)
    const { dir = '' } = store.latest(clone) ?? {}
    expect(await readFile(join(dir, 'app/criu/pages-1.img'), 'utf8')).toBe('memory')
  })

  it.each([
    ['is gone', undefined],
    ['is of an older generation than the operator chose', 2],
  ])('is refused if the memory %s', async (_, generation) => {
    if (generation !== undefined) await save(generation)
    await expect(copy()).rejects.toMatchObject({ code: 'CloneSourceGone' })
    expect(store.latest(clone)).toBeUndefined()
  })

  it('leaves nothing behind when it is called off, or has no room', async () => {
    await save(3, 'x'.repeat(100_000))
    await expect(copy(AbortSignal.abort(new Error('called off')))).rejects.toThrow('called off')
    // Room for the copy alone would leave none for the next generation of its source.
    const lent = store.lend(namespace, store.room - 150_000)
    const told: string[] = []
    await expect(copy(undefined, told)).rejects.toMatchObject({ code: 'StoreFull' })
    expect(told).toEqual([])
    lent()
    expect(store.latest(clone)).toBeUndefined()
    const left = (await readdir(root, { recursive: true })).filter(path => path.includes('clones'))
    expect(left.filter(path => path.includes('img'))).toEqual([])
    expect(await copy()).toHaveLength(2)
  })

  it('makes room as a checkpoint does, and gives back what it did not use', async () => {
    let lent: (() => void) | undefined
    const asked: number[] = []
    store = createGenerationStore({
      ...{ dir: root, budget: 1 << 20, clock: createFakeClock(), random: seededRandom(1) },
      relieve: bytes => {
        asked.push(bytes)
        lent?.()
        return Promise.resolve()
      },
    })
    await save(3, 'x'.repeat(100_000))
    lent = store.lend(namespace, store.room - 150_000)
    const { bytes = 0 } = store.latest(slotKey)?.manifest ?? {}
    await copy()
    expect(asked).toEqual([2 * bytes])
    expect(store.room).toBe(store.budget - store.bytes)
  })
})

it('MP-28: a copy of large memory can be called off in the middle of a file', async () => {
  const bytes = 24 << 20
  store = createGenerationStore({
    ...{ dir: root, budget: 1 << 30, clock: createFakeClock(), random: seededRandom(1) },
  })
  await save(3, 'x'.repeat(bytes))
  const calling = new AbortController()
  const { signal } = calling
  const look = signal.throwIfAborted.bind(signal)
  let looks = 0
  let written = 0
  signal.throwIfAborted = () => {
    looks += 1
    if (looks === 3) {
      const paths = readdirSync(root, { recursive: true }).map(String)
      const [image = ''] = paths.filter(path => /clones.*img$/.test(path))
      written = statSync(join(root, image)).size
      calling.abort(new Error('called off'))
    }
    look()
  }
  await expect(copy(signal)).rejects.toThrow('called off')
  expect(written).toBeGreaterThan(0)
  expect(written).toBeLessThan(bytes)
})

describe('the agent that is to copy', () => {
  const typesAt = (node: string, over = {}) =>
    desiredTasks(snapshot({ node, slots: [clone], ...over })).map(({ type }) => type)

  it('is the one that the Lease names, until it has the copy', () => {
    expect(typesAt('a')).toContain('copyMemory')
    expect(typesAt('b')).not.toContain('copyMemory')
    expect(typesAt('a', { kept: new Map([[nameOf(clone), kept()]]) })).not.toContain('copyMemory')
  })

  it('reads no source that no slot can have: one such Lease would stop all work of the agent', () => {
    const { metadata, spec } = slotLeaseBody({ ...clone, cloneOf: { ...from, name: 'No_Name' } })
    const told = parseSlotLease({ metadata: { ...metadata, uid: 'u', resourceVersion: '1' }, spec })
    expect(told).toBeDefined()
    expect(typesAt('a', { slots: [told, clone] })).toContain('copyMemory')
  })

  it('copies nothing once a pod was called to the slot: that has had the copy', () => {
    const slots = [{ ...clone, holder: { name: 'h', uid: 'uid-h' } }]
    expect(typesAt('a', { slots })).not.toContain('copyMemory')
  })

  it('makes one copy at a time', () => {
    const slots = [clone, { ...clone, name: 'clones-1' }]
    const copies = desiredTasks(snapshot({ node: 'a', slots })).filter(({ type }) => type === 'copyMemory')
    const turns = copies.map(({ memoryOf }) => memoryOf)
    expect(turns).toHaveLength(2)
    expect(new Set(turns).size).toBe(1)
    expect(turns).not.toContain(undefined)
  })
})
