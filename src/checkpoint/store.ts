/**
 * Generations on this node: one directory each, below one directory for each incarnation of a slot. A generation is complete
 * or absent. The store writes a draft and renames it when all of it is on disk, and a removal begins with a rename,
 * too. So after a crash at any point `load` finds only complete generations and leftovers to delete.
 *
 * Long because all operations share one table of generations and its budget.
 */
import { mkdir, readdir, rename, rm, rmdir } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { parseSlotKey, type SlotKey } from '../api/slot-key.ts'
import type { Clock } from '../kube/clock.ts'
import type { Random } from '../kube/random.ts'
import { createDigestMemory } from './digest-memory.ts'
import { CheckpointError, isCheckpointError } from './errors.ts'
import { syncDirectory } from './files.ts'
import type { BeginOptions, CommitOptions, Draft, Dropped, GenerationStore } from './generation-store.ts'
import { formatManifest, type Manifest, newestFirst, parseManifest, slotName } from './manifest.ts'
import type { ComparePages } from './page-program.ts'
import { createRoom } from './room.ts'
import { sealFiles } from './seal-files.ts'
import { bytesOnDisk, isSystemError, noSpace, readStored, type Stored, writeManifest } from './stored.ts'

export type * from './generation-store.ts'
export type { Stored } from './stored.ts'

export interface StoreOptions {
  /** A directory on a tmpfs for the store alone. `load` creates it. */
  readonly dir: string
  /** Bytes that all generations and drafts may take up. */
  readonly budget: number
  /**
   * Share (0 to 1) that one namespace may take of the space that all others leave, so that there is always some left
   * for one more namespace. Default 1.
   */
  readonly share?: number
  readonly clock: Clock
  readonly random: Random
  /** Milliseconds on a clock that continues when this process ends. Default: CLOCK_MONOTONIC. */
  readonly uptime?: () => number
  /** Whether large images of memory get digests by page. Default: always. */
  readonly digestByPage?: () => boolean
  /** Default: this process compares pages. */
  readonly comparePages?: ComparePages | undefined
  /**
   * Called to free this many bytes when there is no room for another generation of this namespace. The store then tries once
   * more.
   */
  readonly relieve?: (bytes: number, namespace: string) => Promise<void>
}

interface Entry {
  readonly stored: Stored
  /** On disk. */
  readonly bytes: number
  readers: number
  /** A draft may write over its files. It is no generation meanwhile. */
  lent: boolean
  /** Remove it as soon as it has no readers. */
  doomed: boolean
  removal: Promise<void> | undefined
}

const systemUptime = () => Number(process.hrtime.bigint() / 1_000_000n)

const draftPrefix = '.draft-'
const doomedPrefix = '.doomed-'

const same = (manifest: Manifest): Manifest => manifest

/** Returns the bytes of all generations of a namespace. */
function bytesIn(slots: ReadonlyMap<string, readonly Entry[]>, namespace: string): number {
  let sum = 0
  for (const [slot, entries] of slots)
    if (parseSlotKey(slot)?.namespace === namespace) for (const { bytes } of entries) sum += bytes
  return sum
}

/** Ignores failures with these codes, which mean that the wanted state already holds. */
const unless =
  (...codes: readonly string[]) =>
  (error: unknown) => {
    if (!isSystemError(error, ...codes)) throw error
  }

/**
 * Resolves when this holds.
 * @param waiting the callbacks for when it may have changed.
 * @throws the signal's reason
 */
const untilTrue = (holds: () => boolean, waiting: Set<() => void>, signal: AbortSignal): Promise<void> =>
  new Promise((resolve, reject) => {
    const end = () => {
      waiting.delete(look)
      signal.removeEventListener('abort', onAbort)
    }
    const onAbort = () => {
      end()
      reject(signal.reason)
    }
    const look = () => {
      if (!holds()) return
      end()
      resolve()
    }
    if (signal.aborted) return onAbort()
    signal.addEventListener('abort', onAbort)
    waiting.add(look)
    look()
  })

/** @param isRead true if a generation of this slot (`slotName`) is being read. */
function createReaders(isRead: (slot: string) => boolean) {
  /** Callbacks for when a reader releases a generation, or an announced reader is done. */
  const waiting = new Set<() => void>()
  /** Announced readers, with slot names. */
  const announced = new Set<{ readonly slot: string }>()
  const tell = () => {
    for (const look of [...waiting]) look()
  }
  const isAnnounced = (slot: string) => [...announced].some(reader => reader.slot === slot)
  return {
    tell,
    announceReader(slot: SlotKey) {
      const reader = { slot: slotName(slot) }
      announced.add(reader)
      return () => {
        if (announced.delete(reader)) tell()
      }
    },
    unread(slot: SlotKey, signal: AbortSignal) {
      const name = slotName(slot)
      return untilTrue(() => !isRead(name) && !isAnnounced(name), waiting, signal)
    },
    received(slot: SlotKey, signal: AbortSignal) {
      const name = slotName(slot)
      return untilTrue(() => !isAnnounced(name), waiting, signal)
    },
  }
}

export function createGenerationStore(options: StoreOptions): GenerationStore {
  const { dir: root, budget, share = 1, clock, random, uptime = systemUptime, relieve } = options
  const { digestByPage = () => true, comparePages } = options
  const slots = new Map<string, readonly Entry[]>()
  const holdDigests = createDigestMemory()
  /** Bytes that a draft of the slot requested and did not get, by slot name. */
  const refused = new Map<string, number>()
  /** How many generations the last `prune` of a slot kept, by slot name. */
  const keeps = new Map<string, number>()
  const readers = createReaders(slot => (slots.get(slot) ?? []).some(entry => entry.readers > 0))
  let bytes = 0
  const room = createRoom({
    budget,
    share,
    bytesOf: namespace => (namespace === undefined ? bytes : bytesIn(slots, namespace)),
  })

  const live = (slot: SlotKey) =>
    (slots.get(slotName(slot)) ?? []).filter(entry => !entry.doomed && !entry.lent)
  const find = (slot: SlotKey, generation: number, epoch?: number) =>
    live(slot).find(
      ({ stored: { manifest: it } }) => it.generation === generation && it.epoch === (epoch ?? it.epoch),
    )
  const uniqueName = (prefix: string) => `${prefix}${Buffer.from(random.bytes(8)).toString('hex')}`

  function add(slot: string, stored: Stored) {
    const entry: Entry = {
      stored,
      bytes: bytesOnDisk(stored.manifest.files),
      readers: 0,
      lent: false,
      doomed: false,
      removal: undefined,
    }
    const entries = [...(slots.get(slot) ?? []), entry]
    slots.set(
      slot,
      entries.sort((a, b) => newestFirst(a.stored.manifest, b.stored.manifest)),
    )
    bytes += entry.bytes
  }

  /** Renames first: a directory that is half deleted when the process dies must not look like a generation. */
  async function erase(slot: string, dir: string) {
    const doomed = join(root, slot, uniqueName(doomedPrefix))
    await rename(dir, doomed).catch(unless('ENOENT'))
    await rm(doomed, { recursive: true, force: true })
    await rmdir(join(root, slot)).catch(unless('ENOTEMPTY', 'EEXIST', 'ENOENT'))
  }

  async function remove(entry: Entry) {
    entry.stored.held?.forget()
    const slot = slotName(entry.stored.manifest.slot)
    await erase(slot, entry.stored.dir)
    const rest = (slots.get(slot) ?? []).filter(it => it !== entry)
    if (rest.length > 0) slots.set(slot, rest)
    else {
      slots.delete(slot)
      keeps.delete(slot)
    }
    // Subtracted only now: a draft admitted before the deletion could fill the tmpfs.
    bytes -= entry.bytes
  }

  async function doom(entry: Entry) {
    entry.doomed = true
    if (entry.readers > 0) return
    entry.removal ??= remove(entry)
    try {
      await entry.removal
    } catch (error) {
      entry.removal = undefined
      throw error
    }
  }

  /** Keeps the files of a generation in place until the caller calls the returned function. */
  function hold(entry: Entry): () => void {
    entry.readers += 1
    let released = false
    return () => {
      if (released) return
      released = true
      entry.readers -= 1
      readers.tell()
      // No caller waits for this removal. A generation that cannot be removed still counts, and the next removal
      // retries.
      if (entry.doomed) doom(entry).catch(() => undefined)
    }
  }

  /** Takes the generation out of the store that the next one makes superfluous. Undefined: there is none, or it is being read. */
  function lendSpare(slot: SlotKey) {
    // The newest one is the base, and stays whatever happens to the draft.
    const spare = live(slot)[Math.max((keeps.get(slotName(slot)) ?? Number.POSITIVE_INFINITY) - 1, 1)]
    if (spare === undefined || spare.readers > 0) return undefined
    const letGo = hold(spare)
    spare.lent = true
    return {
      stored: spare.stored,
      /** Of files that another generation may be written over. */
      bytes: spare.stored.manifest.files.reduce((sum, { size, byPage }) => sum + (byPage ? size : 0), 0),
      /** Removes the files that no draft has taken, and with them the generation. */
      remove() {
        spare.doomed = true
        letGo()
      },
      /** It is a generation again, unless it was removed meanwhile. */
      giveBack() {
        spare.lent = false
        letGo()
      },
    }
  }

  /** Removes the generations beyond the newest `keep`, and those whose earlier removal failed. */
  async function removeOld(slot: string, keep: number) {
    const entries = slots.get(slot) ?? []
    const kept = entries.filter(entry => !entry.doomed).slice(0, Math.max(keep, 0))
    for (const entry of entries) if (!kept.includes(entry)) await doom(entry)
  }

  async function begin(slot: SlotKey, generation: number, options: BeginOptions = {}): Promise<Draft> {
    const startedAt = clock.monotonic()
    const name = slotName(slot)
    const dir = join(root, name, uniqueName(draftPrefix))
    const wanted = options.expectedBytes ?? live(slot)[0]?.bytes ?? 0
    // An earlier draft found out how much it needs only when it was half written, and failed. Make that room first.
    const missing = refused.get(name) ?? 0
    refused.delete(name)
    let finished = false
    const least = Math.max(wanted, missing)
    let spare = options.overSpare === true && least > room.of(slot.namespace) ? lendSpare(slot) : undefined
    // If its room is not enough, it stays a generation, and may be removed for another one.
    if (spare !== undefined && least - spare.bytes > room.of(slot.namespace)) {
      spare.giveBack()
      spare = undefined
    }
    let taken: typeof spare
    /** Bytes of the spare generation that this one is written over. They count as those of the spare one. */
    const lent = spare?.bytes ?? 0
    const beyond = (size: number) => Math.max(size - lent, 0)

    async function discard() {
      if (finished) return
      finished = true
      spare?.giveBack()
      try {
        await rm(dir, { recursive: true, force: true })
      } finally {
        // Only now: files of the spare one may be in the draft.
        taken?.remove()
        room.release(dir)
      }
    }

    function takeSpare(): Stored | undefined {
      if (finished || taken !== undefined) return undefined
      taken = spare ?? lendSpare(slot)
      spare = undefined
      return taken?.stored
    }

    function setAsideLate(size: number) {
      try {
        room.reserve(dir, slot.namespace, beyond(size))
      } catch (error) {
        refused.set(name, size)
        throw error
      }
    }

    async function seal(manifest: Omit<Manifest, 'files' | 'bytes'>, options: CommitOptions) {
      if (slotName(manifest.slot) !== name || manifest.generation !== generation)
        throw new CheckpointError('BadManifest', 'the manifest and its draft name different generations')
      const { files = [], pageDigests, stoppedAt = startedAt, sign = same, signal } = options
      const before = live(slot)[0]
      const release = before && hold(before)
      const sealed = await sealFiles(dir, {
        ...{ known: files, pageDigests, reserve: setAsideLate, byPage: digestByPage() },
        ...{ base: before?.stored, comparePages, signal },
      }).finally(() => release?.())
      const { digests, ...content } = sealed
      const full = sign(parseManifest(formatManifest({ ...manifest, ...content })))
      const completedAt = clock.monotonic()
      const pipelineMs = Math.max(completedAt - stoppedAt, 0)
      await writeManifest(dir, full, { uptimeMs: uptime(), pipelineMs })
      signal?.throwIfAborted()
      const settled = await settle(dir, name, full)
      return { dir: settled, manifest: full, completedAt, pipelineMs, held: digests && holdDigests(digests) }
    }

    try {
      if (relieve !== undefined && beyond(missing) > room.of(slot.namespace))
        await relieve(beyond(missing), slot.namespace)
      try {
        room.reserve(dir, slot.namespace, beyond(wanted))
      } catch (error) {
        if (relieve === undefined || !isCheckpointError(error, 'StoreFull')) throw error
        await relieve(beyond(wanted), slot.namespace)
        room.reserve(dir, slot.namespace, beyond(wanted))
      }
      await mkdir(dir, { recursive: true, mode: 0o700 })
    } catch (error) {
      room.release(dir)
      spare?.giveBack()
      throw noSpace(error)
    }
    return {
      slot,
      generation,
      dir,
      reserve(wanted) {
        if (!finished) setAsideLate(wanted)
      },
      grow(written) {
        if (!finished && beyond(written) > room.reservedBy(dir)) setAsideLate(written)
      },
      room: () => room.of(slot.namespace, dir) + lent,
      takeSpare,
      needsSpare: lent > 0,
      async commit(manifest, options = {}) {
        if (finished)
          throw new CheckpointError('Superseded', `the draft of generation ${generation} is finished`)
        try {
          const stored = Object.freeze(await seal(manifest, options))
          finished = true
          spare?.giveBack()
          taken?.remove()
          room.release(dir)
          add(name, stored)
          await syncDirectory(join(root, name))
          return stored
        } catch (error) {
          await discard()
          throw noSpace(error)
        }
      },
      discard,
    }
  }

  /**
   * Gives a draft its final name. Two epochs may both have a generation of this number: the second one's name includes
   * its epoch.
   */
  async function settle(draft: string, slot: string, { generation, epoch }: Manifest): Promise<string> {
    const known = (slots.get(slot) ?? []).some(
      ({ stored: { manifest: it } }) => it.generation === generation && it.epoch === epoch,
    )
    if (!known)
      for (const name of [`${generation}`, `${generation}.${epoch}`]) {
        const dir = join(root, slot, name)
        try {
          // Never replaces a generation: rename replaces only empty directories, and a generation is not empty.
          await rename(draft, dir)
          return dir
        } catch (error) {
          if (!isSystemError(error, 'ENOTEMPTY', 'EEXIST')) throw error
        }
      }
    throw new CheckpointError('Superseded', `generation ${generation} of epoch ${epoch} is already complete`)
  }

  async function loadSlot(slot: string): Promise<Dropped[]> {
    const dropped: Dropped[] = []
    for (const name of await readdir(join(root, slot))) {
      const dir = join(root, slot, name)
      try {
        if (!/^[1-9]\d*(\.\d+)?$/.test(name))
          throw new CheckpointError('BadManifest', 'it was incomplete, or being removed')
        const stored = await readStored(dir, { clock, uptime })
        const { slot: key, generation, epoch } = stored.manifest
        if (slotName(key) !== slot || ![`${generation}`, `${generation}.${epoch}`].includes(name))
          throw new CheckpointError('BadManifest', 'its manifest names another generation')
        add(slot, stored)
      } catch (error) {
        if (!isCheckpointError(error) && !isSystemError(error, 'ENOENT', 'ENOTDIR')) throw error
        dropped.push({ name: `${slot}/${basename(dir)}`, reason: (error as Error).message })
        await erase(slot, dir)
      }
    }
    return dropped
  }

  return {
    begin,
    latest: slot => live(slot)[0]?.stored,
    list: () =>
      [...slots.values()].flatMap(entries =>
        entries.filter(it => !it.doomed && !it.lent).map(it => it.stored),
      ),
    open: (slot, generation, epoch) => find(slot, generation, epoch)?.stored,
    async prune(slot, keep) {
      const name = slotName(slot)
      if (slots.has(name)) keeps.set(name, keep)
      await removeOld(name, keep)
    },
    async drop(slot, generation, epoch) {
      const entry = find(slot, generation, epoch)
      if (entry !== undefined) await doom(entry)
    },
    remove: async slot => removeOld(slotName(slot), 0),
    get bytes() {
      return bytes
    },
    budget,
    get room() {
      return room.left()
    },
    roomFor: namespace => room.of(namespace),
    removed: async () =>
      void (await Promise.allSettled([...slots.values()].flat().map(({ removal }) => removal))),
    lend(namespace, wanted) {
      const name = uniqueName('lent-')
      room.reserve(name, namespace, wanted)
      return () => void room.release(name)
    },
    retain(slot, generation, epoch) {
      const entry = find(slot, generation, epoch)
      if (entry === undefined)
        throw new CheckpointError('NoSuchGeneration', `this node does not have generation ${generation}`)
      return hold(entry)
    },
    announceReader: readers.announceReader,
    unread: readers.unread,
    received: readers.received,
    async load() {
      await mkdir(root, { recursive: true, mode: 0o700 })
      const dropped: Dropped[] = []
      for (const entry of await readdir(root, { withFileTypes: true }))
        if (entry.isDirectory() && parseSlotKey(entry.name) !== undefined)
          dropped.push(...(await loadSlot(entry.name)))
      return dropped
    },
  }
}
