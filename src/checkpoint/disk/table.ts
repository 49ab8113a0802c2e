/** The files on a node's disk, and the space that they and the unfinished ones take up. */
import { CheckpointError } from '../errors.ts'
import { assertShare, type NamespaceUse, type SharedBudget } from '../namespace-share.ts'
import type { Head } from './head.ts'

export interface DiskFile {
  readonly tag: string
  readonly bytes: number
  /**
   * The namespace to which the file counts. The name of a file does not tell it: undefined from the start of this
   * process until a caller has the key of the slot.
   */
  namespace: string | undefined
  head: Head | undefined
}

/** A file that is being written. */
export interface Growing {
  readonly tag: string
  readonly namespace: string
  readonly generation: number
}

export interface DiskTable {
  /** By the names of the files. */
  readonly files: Map<string, DiskFile>
  /** Bytes of all files, with those that are being written. */
  taken(): number
  /** Counts the files with this tag to a namespace, also after its Lease is gone. */
  claim(tag: string, namespace: string): void
  begin(name: string, file: Growing): void
  /**
   * Takes space for more bytes of a file that is being written. Call it before the write: other writes run meanwhile.
   * @throws CheckpointError DiskFull, DiskShareFull
   */
  grow(name: string, bytes: number): void
  /** Gives back the space of a file that is being written. */
  end(name: string): void
}

export function createDiskTable(of: SharedBudget): DiskTable {
  const files = new Map<string, DiskFile>()
  const growing = new Map<string, Growing & { bytes: number }>()

  const taken = () => {
    let sum = 0
    for (const { bytes } of files.values()) sum += bytes
    for (const { bytes } of growing.values()) sum += bytes
    return sum
  }

  /**
   * The older files of the slot count to no namespace here, because the new one replaces them. Otherwise a namespace
   * with a full share could not renew its copies. They still count to the budget.
   */
  function useBeside({ tag, namespace }: Growing): NamespaceUse & { readonly replaced: number } {
    let [own, replaced] = [0, 0]
    for (const file of files.values())
      if (file.tag === tag) replaced += file.bytes
      else if (file.namespace === namespace) own += file.bytes
    for (const file of growing.values()) if (file.namespace === namespace) own += file.bytes
    return { namespace, own, others: taken() - own - replaced, replaced }
  }

  return {
    files,
    taken,
    claim(tag, namespace) {
      for (const file of files.values()) if (file.tag === tag) file.namespace = namespace
    },
    begin: (name, file) => void growing.set(name, { ...file, bytes: 0 }),
    grow(name, bytes) {
      const file = growing.get(name)
      if (file === undefined) throw new Error(`${name} is not being written`)
      if (taken() + bytes > of.budget)
        throw new CheckpointError(
          'DiskFull',
          `${taken()} of ${of.budget} bytes are in use, so generation ${file.generation} does not fit beside the previous one`,
        )
      const use = useBeside(file)
      // A copy that is no larger than the one before takes no space from others. They may have more than when that one was written.
      if (file.bytes + bytes > use.replaced) assertShare(bytes, use, of, 'DiskShareFull')
      file.bytes += bytes
    },
    end: name => void growing.delete(name),
  }
}
