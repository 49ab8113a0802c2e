/** The generations on a node, as the rest of its agent sees them. */
import type { SlotKey } from '../api/slot-key.ts'
import type { GenerationFile, Manifest } from './manifest.ts'
import type { Stored } from './stored.ts'

export interface GenerationStore {
  /**
   * Starts a generation. Reserves room for it: `expectedBytes`, or by default the size of the slot's newest generation.
   * @throws CheckpointError StoreFull
   */
  begin(slot: SlotKey, generation: number, options?: BeginOptions): Promise<Draft>
  /** The newest by epoch, then by number. */
  latest(slot: SlotKey): Stored | undefined
  list(): readonly Stored[]
  /** Finds a generation by number. Without an epoch, the latest epoch that has this number counts. */
  open(slot: SlotKey, generation: number, epoch?: number): Stored | undefined
  /**
   * Removes all but the `keep` newest generations. A generation that is being read is removed after its last reader.
   */
  prune(slot: SlotKey, keep: number): Promise<void>
  /** Removes one generation; if it is being read, after its last reader. */
  drop(slot: SlotKey, generation: number, epoch: number): Promise<void>
  /** Removes all generations of a slot. A generation that is being read is removed after its last reader. */
  remove(slot: SlotKey): Promise<void>
  /** Bytes of all complete generations. */
  readonly bytes: number
  readonly budget: number
  /** Bytes that are neither taken nor reserved. */
  readonly room: number
  /** The part of them that a namespace may have. */
  roomFor(namespace: string): number
  /** Resolves when every removal that has begun has ended. */
  removed(): Promise<void>
  /**
   * Reserves room for something other than a generation, until the caller calls the returned function.
   * @throws CheckpointError StoreFull
   */
  lend(namespace: string, bytes: number): () => void
  /**
   * Keeps a generation's files in place until the caller calls the returned function.
   * @throws CheckpointError NoSuchGeneration
   */
  retain(slot: SlotKey, generation: number, epoch?: number): () => void
  /**
   * Registers a receiver that still processes a generation of the slot, until it calls the returned function.
   * `unread()` waits for it; the files are not pinned (see `retain`).
   */
  announceReader(slot: SlotKey): () => void
  /**
   * Resolves when no generation of the slot is being read, and no announced reader works on the slot.
   * @throws the signal's reason
   */
  unread(slot: SlotKey, signal: AbortSignal): Promise<void>
  /**
   * Resolves when no announced reader works on the slot. Those that only read files here do not count, such as the disk.
   * @throws the signal's reason
   */
  received(slot: SlotKey, signal: AbortSignal): Promise<void>
  /**
   * Call once, before anything else: takes over the generations of an earlier process.
   * @returns the directories that it discarded, and why.
   */
  load(): Promise<readonly Dropped[]>
}

export interface BeginOptions {
  readonly expectedBytes?: number
  /**
   * Where there is no room otherwise, the draft may count on that of the generation that `takeSpare` returns, if that is enough. The caller takes
   * it before it writes, and moves or removes all its files with digests by page.
   */
  readonly overSpare?: boolean
}

export interface Draft {
  readonly slot: SlotKey
  readonly generation: number
  /** An empty directory that belongs to the caller until `commit` or `discard`. */
  readonly dir: string
  /**
   * Reserves room for this many bytes in all.
   * @throws CheckpointError StoreFull
   */
  reserve(bytes: number): void
  /**
   * Raises the reservation to this many bytes in all. A larger reservation, made for the expected size, stays.
   * @throws CheckpointError StoreFull
   */
  grow(bytes: number): void
  /** Most bytes that the draft could have in all at present. */
  room(): number
  /**
   * Takes a generation out of the store that would be removed once this draft is complete, by the number that the last
   * `prune` kept. The caller may move its files into the draft, and write over them. The end of the draft removes the rest.
   * Undefined: there is none, or it is being read.
   */
  takeSpare(): Stored | undefined
  /** True if the draft counts on the room of the spare generation (`overSpare`). */
  readonly needsSpare: boolean
  /**
   * Makes the draft a generation. If it fails, the draft is discarded.
   * @throws CheckpointError StoreFull, BadDraft, Superseded, BadManifest; the signal's reason
   */
  commit(manifest: Omit<Manifest, 'files' | 'bytes'>, options?: CommitOptions): Promise<Stored>
  /** Discards the draft. No effect on a finished draft. */
  discard(): Promise<void>
}

export interface CommitOptions {
  /** When the pod was stopped, on the store's monotonic clock (ms). Default: when the draft was begun. */
  readonly stoppedAt?: number
  /** Files that the caller has synced and vouches for. The store reads all others to compute their digests. */
  readonly files?: readonly GenerationFile[]
  /** The digests of the pages of files that the caller vouches for, by path: the store does not read these files. */
  readonly pageDigests?: ReadonlyMap<string, Buffer> | undefined
  /** Adds this node's signature as the source. Absent for a generation that another node made. */
  readonly sign?: ((manifest: Manifest) => Manifest) | undefined
  readonly signal?: AbortSignal
}

export interface Dropped {
  /** Path of the directory below the store's. */
  readonly name: string
  readonly reason: string
}
