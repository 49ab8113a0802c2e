import { BinaryWriter, WireType } from '@bufbuild/protobuf/wire'
import { joinEntries } from '../images/image-file.ts'

/** Memory of one task: content of its pages by address / 4096. */
export type Memory = ReadonlyMap<number, Uint8Array>

const entry = (fields: readonly (readonly [number, bigint])[]) => {
  const writer = new BinaryWriter()
  for (const [number, value] of fields) writer.tag(number, WireType.Varint).uint64(value)
  return writer.finish()
}

/**
 * The images that CRIU would make of this memory: a page map of runs, and the pages in the order of their addresses.
 */
export function memoryImages(pid: number, pagesId: number, memory: Memory): Record<string, Buffer> {
  const addresses = [...memory.keys()].sort((a, b) => a - b)
  const runs: { start: number; pages: number }[] = []
  for (const address of addresses) {
    const last = runs.at(-1)
    if (last !== undefined && last.start + last.pages === address) last.pages += 1
    else runs.push({ start: address, pages: 1 })
  }
  return {
    [`pagemap-${pid}.img`]: joinEntries('pagemap', [
      entry([[1, BigInt(pagesId)]]),
      ...runs.map(({ start, pages }) =>
        entry([
          [1, BigInt(start) << 12n],
          [2, BigInt(pages)],
          [4, 4n],
          [5, BigInt(pages)],
        ]),
      ),
    ]),
    [`pages-${pagesId}.img`]: Buffer.concat(
      addresses.map(address => memory.get(address) ?? new Uint8Array()),
    ),
  }
}
