/** Deltas that no agent writes, from a peer that may sign generations of its own. */
import { createHash } from 'node:crypto'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { zstdCompressSync } from 'node:zlib'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { systemClock } from '../../kube/clock.ts'
import { seededRandom, systemRandom } from '../../kube/random.ts'
import { applyDelta } from '../delta.ts'
import type { GenerationFile } from '../manifest.ts'
import { readPageDigests } from '../page-digests.ts'
import { createGenerationStore, type GenerationStore, type Stored } from '../store.ts'
import { pageBytes } from '../stored.ts'
import { manifestOf, putFiles, slotKey } from '../testing/generation.ts'
import type { ApplyOptions } from './apply.ts'
import { contentDigest, formatHeader, kinds } from './records.ts'

const image = 'pages-1.img'

let root: string
let store: GenerationStore
beforeEach(async () => {
  root = await mkdtemp(join(tmpdir(), 'forged-'))
  store = createGenerationStore({ dir: root, budget: 1 << 30, clock: systemClock, random: systemRandom })
})
afterEach(() => rm(root, { recursive: true }))

/** Keeps two generations with these files. @returns the newest one */
async function keepTwo(files: Readonly<Record<string, Uint8Array>>): Promise<Stored> {
  for (const generation of [1, 2]) {
    const draft = await store.begin(slotKey, generation)
    await putFiles(draft.dir, files)
    await draft.commit(manifestOf(generation))
  }
  await store.prune(slotKey, 2)
  const newest = store.latest(slotKey)
  if (newest === undefined) throw new Error('nothing is kept')
  return newest
}

const kept = () => store.list().map(({ manifest }) => manifest.generation)

const copy = (offset: number, length: number): Buffer => {
  const record = Buffer.alloc(17)
  record.writeUInt8(kinds.copy, 0)
  record.writeUInt32LE(0, 1)
  record.writeUIntLE(offset, 5, 6)
  record.writeUIntLE(length, 11, 6)
  return record
}

/** Applies the third generation, which has one file. */
async function apply(
  base: Stored,
  file: GenerationFile,
  records: readonly Buffer[],
  options: ApplyOptions = {},
): Promise<Stored> {
  const { epoch, generation } = base.manifest
  const header = formatHeader({
    base: { epoch, generation, digest: contentDigest(base.manifest) },
    manifest: { ...base.manifest, generation: 3, files: [file], bytes: file.size },
  })
  const ends = Buffer.from([kinds.endOfFile, kinds.end])
  const bytes = zstdCompressSync(Buffer.concat([header, ...records, ends]))
  const stream = async function* () {
    yield bytes
  }
  return applyDelta(stream(), base, await store.begin(slotKey, 3), options)
}

const onlyFile = ({ manifest }: Stored): GenerationFile => {
  const [file] = manifest.files
  if (file === undefined) throw new Error('it has no file')
  return file
}

const random = seededRandom(5)

describe('D7.patch: a forged delta', () => {
  it('costs no older generation if its origin is wrong, for that is known before its content', async () => {
    const base = await keepTwo({ [image]: random.bytes(100 * pageBytes) })
    const file = onlyFile(base)
    const foreign = () => {
      throw new Error('signed by another node')
    }
    await expect(apply(base, file, [copy(0, file.size)], { accept: foreign })).rejects.toThrow('another node')
    expect(kept()).toEqual([2, 1])
  })

  it('costs none if it has no large memory, which alone is written over an older one', async () => {
    const base = await keepTwo({ 'core-1.img': random.bytes(300) })
    await expect(apply(base, onlyFile(base), [])).rejects.toThrow('differs from its manifest')
    expect(kept()).toEqual([2, 1])
  })

  it('is refused if it copies more than there is, although the digest of the last part is that of a page', async () => {
    const base = await keepTwo({ [image]: random.bytes(100 * pageBytes + 100) })
    const digests = (await readPageDigests(base)).get(0) ?? Buffer.alloc(0)
    const sha256 = createHash('sha256').update(digests).digest('hex')
    const file: GenerationFile = { path: image, size: 101 * pageBytes, byPage: true, sha256 }
    await expect(apply(base, file, [copy(0, file.size)])).rejects.toThrow('truncated')
  })

  it('is refused if its records are as small as no agent writes them', async () => {
    const base = await keepTwo({ [image]: random.bytes(2 * pageBytes) })
    const file = onlyFile(base)
    const records = Array.from({ length: file.size }, (_, at) => copy(at, 1))
    await expect(apply(base, file, records)).rejects.toThrow('more records than an agent writes')
  })

  it('does not keep all other work of the process waiting, although all that it names is at hand', async () => {
    const pages = 16_384
    const page = random.bytes(pageBytes)
    const base = await keepTwo({ [image]: Buffer.concat(Array.from({ length: pages }, () => page)) })
    const records = Array.from({ length: pages }, () => copy(0, pageBytes))
    let turns = 0
    const giveWay = async () => {
      turns += 1
    }
    await apply(base, onlyFile(base), records, { giveWay })
    expect(turns).toBeGreaterThan(60)
  })
})
