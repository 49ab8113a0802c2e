/**
 * Sealed (encrypted) generations on the node's disk: one file each, complete or absent. An agent that has the key can
 * read back generations that the tmpfs lost in a reboot or has no room for.
 */
import { mkdir, open, readdir, rename, rm, stat, statfs } from 'node:fs/promises'
import { join } from 'node:path'
import type { SlotKey } from '../../api/slot-key.ts'
import type { Clock } from '../../kube/clock.ts'
import type { Random } from '../../kube/random.ts'
import { applyDelta, encodeDelta } from '../delta.ts'
import { CheckpointError, isCheckpointError } from '../errors.ts'
import { syncDirectory } from '../files.ts'
import type { Draft, GenerationStore } from '../generation-store.ts'
import { newestFirst, slotName } from '../manifest.ts'
import { isSystemError, type Stored } from '../stored.ts'
import type { GenerationKey } from './generation-key.ts'
import { formatHead, type Head, takeHead } from './head.ts'
import { seal, unseal } from './seal.ts'
import { createDiskTable, type DiskFile } from './table.ts'

export interface DiskOptions {
  /** A directory on a disk for these files alone. `load` creates it. */
  readonly dir: string
  /** Bytes that all files may take up. */
  readonly budget: number
  /** Share (0 to 1) that one namespace may take of the space that all others leave. */
  readonly share: number
  readonly clock: Clock
  readonly random: Random
  /** `id` differs for each boot of the machine. `uptime` is in ms and continues across restarts of this process. */
  readonly boot: { readonly id: string; readonly uptime: () => number }
  /** Free bytes (for unprivileged processes) and total bytes of the filesystem. Default: `statfs`. */
  readonly space?: () => Promise<{ readonly free: number; readonly total: number }>
  /** Bytes written between two checks of the filesystem. Default: 16 MiB. */
  readonly lookEvery?: number
}

export interface Sealed extends Head {
  /** Name of its file. */
  readonly file: string
  readonly bytesOnDisk: number
}

export interface WriteOptions {
  readonly signal: AbortSignal
  /** Called after each write with its bytes, to throttle the writing. */
  readonly pace?: (bytes: number) => Promise<void>
}

export interface GenerationDisk {
  /** Call once, before anything else: takes over the files of an earlier process. */
  load(): Promise<void>
  /**
   * Seals a generation into a file. The caller must keep the generation in place until then (`retain`). Older
   * generations of the slot stay: see `prune`.
   * @throws CheckpointError DiskFull, DiskShareFull, DiskLow; the signal's reason. A failed write leaves no file behind.
   */
  write(stored: Stored, key: GenerationKey, options: WriteOptions): Promise<Sealed>
  /** Returns the sealed generations of a slot, newest first. Removes files whose head it cannot read. */
  of(slot: SlotKey, key: GenerationKey): Promise<readonly Sealed[]>
  /**
   * Reads a generation back into the store, which checks every file against its digest.
   * @throws CheckpointError Corrupt, BadManifest, StoreFull; the signal's reason.
   */
  read(
    sealed: Sealed,
    key: GenerationKey,
    store: Pick<GenerationStore, 'begin' | 'open'>,
    signal: AbortSignal,
  ): Promise<Stored>
  remove(file: string): Promise<void>
  /** Removes all but the `keep` newest generations of a slot. */
  prune(slot: SlotKey, key: GenerationKey, keep: number): Promise<void>
  /**
   * Removes every file whose tag is not in `tags`; returns how many. The others count to the share of the namespace that
   * `tags` names for them. The caller asserts that it has seen all slots.
   */
  sweep(listed: {
    readonly complete: true
    readonly tags: ReadonlyMap<string, string | undefined>
  }): Promise<number>
  /** The tags of all files. */
  tags(): ReadonlySet<string>
  readonly bytes: number
  readonly budget: number
}

/** Share of the filesystem that must stay free: below it a kubelet begins to evict pods. */
export const leastFree = 0.15
const blockBytes = 4096

const unfinished = '.new-'
const namePattern = /^([0-9a-f]{32})-[0-9a-f]{16}$/

export function createGenerationDisk(options: DiskOptions): GenerationDisk {
  const { dir: root, budget, share, clock, random, boot, lookEvery = 16 * 1024 * 1024 } = options
  const space = options.space ?? (() => spaceOf(root))
  const table = createDiskTable({ budget, share })
  const { files } = table

  const hex = (bytes: number) => Buffer.from(random.bytes(bytes)).toString('hex')

  async function assertSpace() {
    const { free, total } = await space()
    if (free - lookEvery < total * leastFree)
      throw new CheckpointError(
        'DiskLow',
        `the filesystem of ${root} has ${percent(free, total)} free; below ${percent(leastFree, 1)} the kubelet would evict pods`,
      )
  }

  async function write(stored: Stored, key: GenerationKey, { signal, pace }: WriteOptions): Promise<Sealed> {
    const { manifest } = stored
    const age = clock.monotonic() - stored.completedAt + stored.pipelineMs
    const head: Head = {
      slot: manifest.slot,
      epoch: manifest.epoch,
      generation: manifest.generation,
      takenAt: manifest.takenAt,
      bytes: manifest.bytes,
      boot: boot.id,
      stoppedUptimeMs: boot.uptime() - age,
    }
    const scratch = join(root, `${unfinished}${hex(8)}`)
    const plain = async function* () {
      yield formatHead(head)
      yield* encodeDelta(undefined, stored, { signal })
    }
    let written = 0
    const { generation, slot } = manifest
    table.begin(scratch, { tag: key.tag, namespace: slot.namespace, generation })
    try {
      const handle = await open(scratch, 'wx', 0o600)
      try {
        let looked = Number.NEGATIVE_INFINITY
        for await (const part of seal(plain(), key.secret, random.bytes(16))) {
          signal.throwIfAborted()
          if (written - looked >= lookEvery) {
            await assertSpace()
            looked = written
          }
          table.grow(scratch, part.length)
          await handle.writeFile(part)
          written += part.length
          await pace?.(part.length)
        }
        await handle.sync()
      } finally {
        await handle.close()
      }
      signal.throwIfAborted()
      const file = `${key.tag}-${hex(8)}`
      await rename(scratch, join(root, file))
      const bytes = Math.ceil(written / blockBytes) * blockBytes
      table.end(scratch)
      files.set(file, { tag: key.tag, bytes, namespace: slot.namespace, head })
      await syncDirectory(root)
      return { ...head, file, bytesOnDisk: bytes }
    } catch (error) {
      await rm(scratch, { force: true })
      if (isSystemError(error, 'ENOSPC', 'EDQUOT'))
        throw new CheckpointError('DiskLow', `the filesystem of ${root} is full`, error)
      throw error
    } finally {
      table.end(scratch)
    }
  }

  async function headOf(file: string, entry: DiskFile, slot: SlotKey, key: GenerationKey): Promise<Head> {
    if (entry.head !== undefined) return entry.head
    const handle = await open(join(root, file))
    try {
      const { head } = await takeHead(unseal(handle, key.secret))
      if (slotName(head.slot) !== slotName(slot))
        throw new CheckpointError('Corrupt', 'the file name belongs to another slot')
      entry.head = head
      return head
    } finally {
      await handle.close()
    }
  }

  async function of(slot: SlotKey, key: GenerationKey): Promise<readonly Sealed[]> {
    const found: Sealed[] = []
    table.claim(key.tag, slot.namespace)
    for (const [file, entry] of [...files]) {
      if (entry.tag !== key.tag) continue
      try {
        found.push({ ...(await headOf(file, entry, slot, key)), file, bytesOnDisk: entry.bytes })
      } catch (error) {
        if (!isCheckpointError(error) && !isSystemError(error, 'ENOENT')) throw error
        await remove(file)
      }
    }
    return found.sort(newestFirst)
  }

  async function read(
    sealed: Sealed,
    key: GenerationKey,
    store: Pick<GenerationStore, 'begin' | 'open'>,
    signal: AbortSignal,
  ): Promise<Stored> {
    const { slot, epoch, generation } = sealed
    const file = await open(join(root, sealed.file))
    try {
      const { head, rest } = await takeHead(unseal(file, key.secret))
      const draft = await store.begin(slot, generation, { expectedBytes: head.bytes })
      return await applyDelta(rest, undefined, onlyAs(head, stoppedAt(head), draft), { signal })
    } catch (error) {
      const there = store.open(slot, generation, epoch)
      if (isCheckpointError(error, 'Superseded') && there !== undefined) return there
      throw error
    } finally {
      await file.close()
    }
  }

  /** When the pod was stopped, on our monotonic clock (ms). After a reboot only the source's wall clock tells. */
  function stoppedAt(head: Head): number {
    const age =
      head.boot === boot.id ? boot.uptime() - head.stoppedUptimeMs : clock.now() - Date.parse(head.takenAt)
    return clock.monotonic() - Math.max(age, 0)
  }

  async function remove(file: string): Promise<void> {
    await rm(join(root, file), { force: true })
    files.delete(file)
  }

  return {
    async load() {
      await mkdir(root, { recursive: true, mode: 0o700 })
      for (const file of await readdir(root)) {
        const [, tag] = namePattern.exec(file) ?? []
        if (tag === undefined) {
          if (file.startsWith(unfinished)) await rm(join(root, file), { force: true })
          continue
        }
        const { size } = await stat(join(root, file))
        const bytes = Math.ceil(size / blockBytes) * blockBytes
        files.set(file, { tag, bytes, namespace: undefined, head: undefined })
      }
    },
    write,
    of,
    read,
    remove,
    async prune(slot, key, keep) {
      for (const { file } of (await of(slot, key)).slice(Math.max(keep, 0))) await remove(file)
    },
    async sweep({ tags }) {
      for (const [tag, namespace] of tags) if (namespace !== undefined) table.claim(tag, namespace)
      const orphans = [...files].filter(([, { tag }]) => !tags.has(tag))
      for (const [file] of orphans) await remove(file)
      return orphans.length
    },
    tags: () => new Set([...files.values()].map(({ tag }) => tag)),
    get bytes() {
      return table.taken()
    },
    budget,
  }
}

/** Wraps a draft so that it commits only the generation of this head. */
function onlyAs(head: Head, stoppedAt: number, draft: Draft): Draft {
  return {
    ...draft,
    commit: async (manifest, options) => {
      if (manifest.epoch !== head.epoch || manifest.takenAt !== head.takenAt)
        throw new CheckpointError('Corrupt', 'a generation on the disk differs from its head')
      return draft.commit(manifest, { ...options, stoppedAt })
    },
  }
}

async function spaceOf(path: string) {
  const { bsize, bavail, blocks } = await statfs(path)
  return { free: bavail * bsize, total: blocks * bsize }
}

const percent = (part: number, whole: number) => `${Math.round((100 * part) / Math.max(whole, 1))} %`
