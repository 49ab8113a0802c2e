/** What the rest of an agent sees of the generations on its node. */
import type { SlotKey } from '../api/slot-lease.ts'
import type { GenerationFile, Manifest } from './manifest.ts'
import type { Stored } from './stored.ts'

export interface GenerationStore {
  /**
   * Starts a generation. Room for it is set aside: as much as the slot's newest takes, unless `expectedBytes` says.
   * @throws CheckpointError StoreFull
   */
  begin(slot: SlotKey, generation: number, options?: BeginOptions): Promise<Draft>
  /** The newest by epoch, then by number. */
  latest(slot: SlotKey): Stored | undefined
  list(): readonly Stored[]
  /** Without an epoch, that of the latest epoch which has this number. */
  open(slot: SlotKey, generation: number, epoch?: number): Stored | undefined
  /** Removes all but the `keep` newest generations; those that are being read, when nobody reads them any more. */
  prune(slot: SlotKey, keep: number): Promise<void>
  /** Removes one generation; if it is being read, when nobody reads it any more. */
  drop(slot: SlotKey, generation: number, epoch: number): Promise<void>
  /** Removes all generations; those that are being read, when nobody reads them any more. */
  remove(slot: SlotKey): Promise<void>
  /**
   * Removes the slots that are not alive. The list has to be whole: what a failed or partial list leaves out would be
   * gone for good, so its caller says that it has seen all of it.
   */
  sweep(listed: { readonly complete: true; readonly live: readonly SlotKey[] }): Promise<void>
  /** What complete generations take up. */
  readonly bytes: number
  readonly budget: number
  /** Bytes that are neither taken nor set aside. */
  readonly room: number
  /**
   * Sets aside room for what is no generation, until the function returned is called.
   * @throws CheckpointError StoreFull
   */
  lend(namespace: string, bytes: number): () => void
  /**
   * Keeps a generation's files where they are until the function returned is called.
   * @throws CheckpointError NoSuchGeneration
   */
  retain(slot: SlotKey, generation: number, epoch?: number): () => void
  /**
   * Says, until the function returned is called, that somebody who has read a generation of the slot is not done with it: it
   * counts for `unread`, and keeps nothing where it is.
   */
  claim(slot: SlotKey): () => void
  /**
   * Resolves when nobody reads a generation of the slot, or has a claim to it.
   * @throws the signal's reason
   */
  unread(slot: SlotKey, signal: AbortSignal): Promise<void>
  /**
   * To be called once, before anything else: takes over what an earlier process has left.
   * @returns what was thrown away, and why.
   */
  load(): Promise<readonly Dropped[]>
}

export interface BeginOptions {
  readonly expectedBytes?: number
}

export interface Draft {
  readonly slot: SlotKey
  readonly generation: number
  /** An empty directory that is the caller's until `commit` or `discard`. */
  readonly dir: string
  /**
   * Sets aside room for this many bytes in all.
   * @throws CheckpointError StoreFull
   */
  reserve(bytes: number): void
  /**
   * Sets aside room for this many bytes in all where it is less: what is set aside for what was expected stays.
   * @throws CheckpointError StoreFull
   */
  grow(bytes: number): void
  /** More than so many bytes it could not have in all, as it is now. */
  room(): number
  /**
   * Makes the draft a generation. If it fails the draft is gone.
   * @throws CheckpointError StoreFull, BadDraft, Superseded, BadManifest; the signal's reason
   */
  commit(manifest: Omit<Manifest, 'files' | 'bytes'>, options?: CommitOptions): Promise<Stored>
  /** Throws it away. A draft that is finished stays as it is. */
  discard(): Promise<void>
}

export interface CommitOptions {
  /** When the memory was that of the pod, on the store's monotonic clock (ms). Default: when the draft was begun. */
  readonly stoppedAt?: number
  /** Files that the caller has synced and vouches for; others are read to compute their digests. */
  readonly files?: readonly GenerationFile[]
  /** Says who made it; of a generation that another node has made: nothing. */
  readonly sign?: ((manifest: Manifest) => Manifest) | undefined
  readonly signal?: AbortSignal
}

export interface Dropped {
  /** Of the directory, below the store's. */
  readonly name: string
  readonly reason: string
}
