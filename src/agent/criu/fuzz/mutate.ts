/**
 * Random changes to CRIU's images, as a node could make them that attacks another node: any bytes, well framed or not.
 */
import { readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Random } from '../../../kube/random.ts'

/** A change at places that it draws when it runs. @returns a description for people. */
export type Mutation = (images: string) => Promise<string>

const extremes = [0, 1, 0x7f, 0x80, 0xff, 0xffff, 0x7fff_ffff, 0x8000_0000, 0xffff_ffff]

/** True for images that CRIU reads, other than pages. */
const isRead = (name: string): boolean => name.endsWith('.img') && !/^(pages-|stats-)/.test(name)

/** Returns the entries of an image after its magic numbers; undefined if the file has no such format. */
function framed(bytes: Buffer): { readonly head: Buffer; readonly entries: Buffer[] } | undefined {
  for (const head of [8, 4]) {
    const entries: Buffer[] = []
    let at = head
    while (at + 4 <= bytes.length) {
      const next = at + 4 + bytes.readUInt32LE(at)
      if (next > bytes.length) break
      entries.push(bytes.subarray(at + 4, next))
      at = next
    }
    if (at === bytes.length && entries.length > 0) return { head: bytes.subarray(0, head), entries }
  }
  return undefined
}

function joined({ head, entries }: { readonly head: Buffer; readonly entries: readonly Buffer[] }): Buffer {
  const sized = entries.flatMap(entry => {
    const size = Buffer.alloc(4)
    size.writeUInt32LE(entry.length)
    return [size, entry]
  })
  return Buffer.concat([head, ...sized])
}

/**
 * Returns one to three changes. The draws do not depend on how a restore went, so the same seed draws the same changes.
 */
export function mutationOf(random: Random): Mutation {
  const below = (limit: number) => Math.floor(random.next() * limit)
  const pick = <T>(from: readonly T[]): T => {
    const found = from[below(from.length)]
    if (found === undefined) throw new Error('nothing to choose from')
    return found
  }

  const ways: Readonly<Record<string, (bytes: Buffer, other: Buffer) => Buffer>> = {
    bits(bytes) {
      for (let i = 0; i <= below(4); i += 1) {
        const at = below(bytes.length)
        bytes[at] = (bytes[at] ?? 0) ^ (1 << below(8))
      }
      return bytes
    },
    /** Changes the value of a field, after the magic numbers and the lengths. */
    field(bytes) {
      const it = framed(bytes)
      if (it === undefined) return bytes
      const entry = pick(it.entries)
      if (entry.length > 0) entry[below(entry.length)] = pick([0, 1, 2, 0x7f, below(256)])
      return bytes
    },
    word(bytes) {
      if (bytes.length >= 8) bytes.writeUInt32LE(pick(extremes), below(bytes.length - 4))
      return bytes
    },
    cut: bytes => bytes.subarray(0, below(bytes.length)),
    grown: bytes => Buffer.concat([bytes, Buffer.from(random.bytes(1 + below(64)))]),
    entries(bytes) {
      const it = framed(bytes)
      if (it === undefined) return bytes
      const [one, two] = [below(it.entries.length), below(it.entries.length)]
      const entries = [...it.entries]
      switch (below(3)) {
        case 0:
          entries.splice(one, 1)
          break
        case 1:
          entries.splice(one, 0, pick(it.entries))
          break
        default:
          entries.splice(one, 1, ...entries.slice(two, two + 1))
      }
      return joined({ ...it, entries })
    },
    exchanged: (_, other) => other,
  }

  // CRIU gets furthest with images that have changed little.
  const drawn = [...Object.keys(ways), 'gone', ...Array<string>(8).fill('field'), 'bits', 'bits']

  return async images => {
    const names = (await readdir(images)).filter(isRead).sort()
    const made: string[] = []
    for (let i = 0; i <= below(3); i += 1) {
      const [name, other, way] = [pick(names), pick(names), pick(drawn)]
      made.push(`${way} ${name}`)
      if (way === 'gone') {
        await rm(join(images, name), { force: true })
        continue
      }
      const [bytes, more] = await Promise.all(
        [name, other].map(each => readFile(join(images, each)).catch(() => Buffer.alloc(0))),
      )
      if (bytes === undefined || more === undefined || bytes.length === 0) continue
      await writeFile(join(images, name), ways[way]?.(bytes, more) ?? bytes)
    }
    return made.join(', ')
  }
}
