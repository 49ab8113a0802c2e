import { BinaryWriter, WireType } from '@bufbuild/protobuf/wire'
import type { Random } from '../../kube/random.ts'
import { joinEntries } from '../images/image-file.ts'

/** Memory of one task: content of its pages by address / 4096. */
export type Memory = ReadonlyMap<number, Uint8Array>

/** Changes this share of the pages, lets some go, and puts others before them. */
export function changedMemory(random: Random, memory: Memory, share: number): Map<number, Uint8Array> {
  const page = () => random.bytes(4096)
  const next = new Map(memory)
  for (const address of memory.keys()) {
    const chance = random.next()
    if (chance < share) next.set(address, page())
    else if (chance < 1.5 * share) next.delete(address)
    else if (chance < 2 * share) next.set(address - 500, page())
  }
  return next
}

const entry = (fields: readonly (readonly [number, bigint])[]) => {
  const writer = new BinaryWriter()
  for (const [number, value] of fields) writer.tag(number, WireType.Varint).uint64(value)
  return writer.finish()
}

/** Flags of a run: its pages are in the dump before, or in this one. */
const [inParent, present] = [1n, 4n]

/**
 * The images that CRIU would make of this memory: a page map of runs, and the pages in the order of their addresses.
 * @param before the memory at the dump before: an incremental dump has only the other pages. Absent: a full dump.
 */
export function memoryImages(
  pid: number,
  pagesId: number,
  memory: Memory,
  before: Memory = new Map(),
): Record<string, Buffer> {
  const addresses = [...memory.keys()].sort((a, b) => a - b)
  const isHere = (address: number) => memory.get(address) !== before.get(address)
  const runs: { start: number; pages: number; flags: bigint }[] = []
  for (const address of addresses) {
    const last = runs.at(-1)
    const flags = isHere(address) ? present : inParent
    if (last !== undefined && last.start + last.pages === address && last.flags === flags) last.pages += 1
    else runs.push({ start: address, pages: 1, flags })
  }
  return {
    [`pagemap-${pid}.img`]: joinEntries('pagemap', [
      entry([[1, BigInt(pagesId)]]),
      ...runs.map(({ start, pages, flags }) =>
        entry([
          [1, BigInt(start) << 12n],
          [2, BigInt(pages)],
          [4, flags],
          [5, BigInt(pages)],
        ]),
      ),
    ]),
    [`pages-${pagesId}.img`]: Buffer.concat(
      addresses.filter(isHere).map(address => memory.get(address) ?? new Uint8Array()),
    ),
  }
}
