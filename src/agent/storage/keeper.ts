/**
 * Keeps generations of the tmpfs on the disk as well, in the background: one file at a time, at a bounded rate. For
 * each slot, it writes the newest generation when the slot's turn comes, at most once per interval.
 *
 * Long because reading, writing and removing share the turns of the slots.
 */
import { parseSlotKey } from '../../api/slot-key.ts'
import type { SlotLease } from '../../api/slot-lease.ts'
import type { GenerationDisk, Sealed } from '../../checkpoint/disk/disk.ts'
import type { KeyParts } from '../../checkpoint/disk/generation-key.ts'
import { isCheckpointError } from '../../checkpoint/errors.ts'
import { isNewer, slotName } from '../../checkpoint/manifest.ts'
import type { GenerationStore, Stored } from '../../checkpoint/store.ts'
import type { Clock } from '../../kube/clock.ts'
import type { Log } from '../../kube/log.ts'
import { isNamed } from '../../slot/decide/origin.ts'
import { reasonOf } from '../report/failure.ts'
import { createByteRate } from './byte-rate.ts'
import { type Copy, createCopiesOnDisk } from './copies-on-disk.ts'
import { createRefusals } from './refusals.ts'
import { createWriter, GaveWay } from './writer.ts'

export interface DiskKeeperOptions {
  readonly disk: GenerationDisk
  readonly store: GenerationStore
  /** Returns the parts of keys that this node has beside those in Leases. */
  readonly keyParts: (signal: AbortSignal) => Promise<KeyParts>
  readonly node: string
  /** Slots that concern this node, without those whose policy forbids disks; undefined: the list is incomplete now. */
  readonly slots: () => readonly SlotLease[] | undefined
  /** Returns the slots whose memory leaves this node, or comes to it: see `movingSlots`. */
  readonly moving: () => ReadonlySet<string>
  /** Milliseconds between two files of a slot. */
  readonly everyMs: number
  readonly bytesPerSecond?: number
  /** Called when a generation has been read back into the store. */
  readonly onRecalled: (stored: Stored) => void
  readonly changed: () => void
  readonly clock: Clock
  readonly log: Log
}

export interface OnDisk {
  readonly generation: number
  readonly takenAt: string
}

export interface DiskKeeper {
  /** Writes, recalls and sweeps until the signal fires. */
  run(signal: AbortSignal): Promise<void>
  /** Wakes `run`: there may be something to write. */
  noted(): void
  /**
   * Reads generations that the tmpfs lacks back from the disk. Call it once before any decision that depends on the
   * contents of the tmpfs. `run` retries the failures.
   */
  recall(signal: AbortSignal): Promise<void>
  /**
   * Yields the generations of a slot that only the disk has, newest first; reads each back when the caller asks for it.
   */
  others(lease: SlotLease, signal: AbortSignal): AsyncGenerator<Stored>
  /** Tries to free so many bytes for this namespace in the tmpfs, without losing anything that is needed. */
  relieve(bytes: number, namespace: string): Promise<void>
  onDisk(slot: string): OnDisk | undefined
  /** True if the keeper has searched the disk for the slot, or if the slot does not use it. */
  isRead(slot: string): boolean
  /** Why no slot is written; undefined while the disk takes any. */
  readonly trouble: { readonly reason: string; readonly message: string } | undefined
  /** Why the disk takes no newer generation of the slot, although it takes those of others: one word. */
  refusalOf(slot: string): string | undefined
  /** The different reasons of `refusalOf` for all slots. */
  readonly refusals: ReadonlySet<string>
}

const lookMs = 5_000
/** Interval of retries for generations that cannot be read, or for which the tmpfs has no room. */
const againMs = 20_000
/** How long to keep files that no slot here wants: a Lease may be about to change. */
const sweepAfterMs = 60_000
const defaultRate = 32 * 1024 * 1024
/** Most time for which the write of a file gives way to moves, and the pause between two looks, ms. */
const giveWayMs = { most: 20_000, look: 100 }
/** The part of all other time by which writes may give way again. */
const refill = 1 / 4
/** For so long a slot counts as one that moves, ms. Its pod may never start. */
const mostMovingMs = 60_000

interface Written {
  readonly on: OnDisk | undefined
  readonly version: string
  /** Time of the last attempt, monotonic ms. */
  readonly at: number
}

/** True if the slot is suspended, and this node had its pod. */
const isResting = ({ suspended, node }: SlotLease, here: string): boolean =>
  suspended === true && node === here

/** The slots of a node by its roles. */
const rolesOf = (slots: DiskKeeperOptions['slots'], here: string) => ({
  held: () => (slots() ?? []).filter(({ holders }) => holders.includes(here)),
  // Nothing will be saved again there soon, and the node that has saved a suspended slot last has one of its few copies.
  resting: () => (slots() ?? []).filter(lease => isResting(lease, here) && !lease.holders.includes(here)),
  // Includes slots whose Lease names this node for its present or former role: it may have the only copy.
  known: () => (slots() ?? []).filter(lease => isNamed(lease, here)),
})

/** While the policy of a slot is unknown, its files stay, and none is added. */
const mayAdd = ({ policy }: SlotLease): boolean => policy?.disk === true

const versionOf = ({ epoch, generation }: Pick<Sealed, 'epoch' | 'generation'>): string =>
  `${epoch}.${generation}`

/** Returns the slots that move, unless they have done so for long. */
function movingNow({ moving, clock }: Pick<DiskKeeperOptions, 'moving' | 'clock'>): () => readonly string[] {
  /** Since when each slot moves, monotonic ms. */
  const moves = new Map<string, number>()
  return () => {
    const found = moving()
    for (const slot of [...moves.keys()]) if (!found.has(slot)) moves.delete(slot)
    const now = clock.monotonic()
    for (const slot of found) if (!moves.has(slot)) moves.set(slot, now)
    return [...moves].flatMap(([slot, since]) => (now - since < mostMovingMs ? [slot] : []))
  }
}

export function createDiskKeeper(options: DiskKeeperOptions): DiskKeeper {
  const { disk, store, keyParts, node, slots, everyMs, onRecalled, changed, clock, log } = options
  const rate = createByteRate(options.bytesPerSecond ?? defaultRate, clock)
  const written = new Map<string, Written>()
  /** Slots (with their lives) for which the disk has been searched. */
  const recalled = new Set<string>()
  /** Time of the next search after a failure, monotonic ms. */
  const againAt = new Map<string, number>()
  const unwantedSince = new Map<string, number>()
  // One namespace with a full share is no trouble of the others, so `trouble` does not have them.
  const refusals = createRefusals(changed)
  let trouble: DiskKeeper['trouble']
  let wake = Promise.withResolvers<void>()
  let relieving: Promise<void> = Promise.resolve()

  const copies = createCopiesOnDisk(disk, keyParts, () => {
    // The disk has to be searched again: with the keys of now, it may have none of the copies.
    written.clear()
    recalled.clear()
    changed()
  })
  const { held, resting, known } = rolesOf(slots, node)
  const moving = movingNow(options)
  const { write, giveWay, giveUpOlder } = createWriter({ disk, store, clock }, pace)

  const tell = (next: DiskKeeper['trouble']) => {
    if (trouble?.reason !== next?.reason) changed()
    trouble = next
  }

  /** `corrupt`: the file has been removed. Any other failure may be temporary, so the file stays. */
  async function readOne(
    sealed: Copy,
    signal: AbortSignal,
  ): Promise<Stored | 'corrupt' | { readonly error: unknown }> {
    const fields = { slot: slotName(sealed.slot), generation: sealed.generation }
    try {
      const stored = await disk.read(sealed, sealed.key, store, signal)
      log.info({ ...fields, bytes: stored.manifest.bytes }, 'generation loaded from the disk')
      onRecalled(stored)
      return stored
    } catch (error) {
      signal.throwIfAborted()
      log.warn({ err: error, ...fields }, 'cannot load a generation from the disk')
      if (!isCheckpointError(error, 'Corrupt', 'BadManifest')) return { error }
      await disk.remove(sealed.file)
      return 'corrupt'
    }
  }

  async function recallSlot(lease: SlotLease, signal: AbortSignal): Promise<void> {
    const name = slotName(lease)
    if (recalled.has(name)) return
    const found = await copies.of(lease, signal)
    if (found === undefined) return
    if (trouble?.reason === 'KeyMissing') tell(undefined)
    if (clock.monotonic() < (againAt.get(name) ?? 0)) return
    const era = copies.exchanges
    let isNoted = false
    let problem: unknown
    for (const sealed of found) {
      // No later epoch than the Lease's has begun, so such a file is forged.
      if (sealed.epoch > lease.epoch) continue
      const latest = store.latest(lease)?.manifest
      const result = isNewer(sealed, latest) ? await readOne(sealed, signal) : undefined
      if (copies.exchanges !== era) return
      // Others wait for generations that are reported as on disk, so a corrupt one must not be noted.
      if (result === 'corrupt') continue
      // A copy that was written with an earlier key counts, and is due to be written with the present one.
      if (!isNoted) note(name, sealed, clock.monotonic() - everyMs, sealed.isBefore ? '' : versionOf(sealed))
      isNoted = true
      if (result === undefined || !('error' in result)) break
      problem = result.error
      // An older one would not fit either, and must not be resumed instead of a newer one.
      if (isCheckpointError(problem, 'StoreFull')) break
    }
    if (!isNoted && written.delete(name)) changed()
    if (problem === undefined) {
      recalled.add(name)
      againAt.delete(name)
      return
    }
    againAt.set(name, clock.monotonic() + againMs)
    tell(reasonOf(problem))
  }

  async function recall(signal: AbortSignal): Promise<void> {
    for (const lease of known())
      try {
        await recallSlot(lease, signal)
      } catch (error) {
        signal.throwIfAborted()
        log.warn({ err: error, slot: slotName(lease) }, 'cannot search the disk for a slot')
        tell(reasonOf(error))
      }
  }

  const note = (slot: string, sealed: Sealed, at: number, version = versionOf(sealed)) => {
    const { generation, takenAt } = sealed
    written.set(slot, { on: { generation, takenAt }, version, at })
    changed()
  }

  /** Returns the slot that has waited longest to write its newest generation. */
  function nextDue(): { readonly lease: SlotLease; readonly stored: Stored } | undefined {
    const due = [...held(), ...resting()].flatMap(lease => {
      const stored = store.latest(lease)
      const last = written.get(slotName(lease))
      if (lease.seal === undefined || stored === undefined || !mayAdd(lease)) return []
      if (last?.version === versionOf(stored.manifest)) return []
      const at = last?.at ?? Number.NEGATIVE_INFINITY
      const pauseMs = lease.suspended === true ? Math.min(everyMs, againMs) : everyMs
      return clock.monotonic() - at < pauseMs ? [] : [{ lease, stored, at }]
    })
    return due.sort((a, b) => a.at - b.at)[0]
  }

  const dueNow = (last?: Written): Written => ({
    ...{ on: last?.on, version: last?.version ?? '' },
    at: clock.monotonic() - everyMs,
  })

  let lookedAt = Number.NEGATIVE_INFINITY
  /** For how long writes may still give way, ms. Time brings it back, so tenants whose pods move all the time leave most of it to the disk. */
  let patienceMs = giveWayMs.most

  async function pace(bytes: number, signal: AbortSignal): Promise<void> {
    // Not for each piece of a few kilobytes: a look goes through all that the agent knows.
    if (clock.monotonic() - lookedAt >= giveWayMs.look) {
      const writtenMs = Math.min(clock.monotonic() - lookedAt, giveWayMs.most / refill)
      patienceMs = Math.min(patienceMs + writtenMs * refill, giveWayMs.most)
      for (let moves = moving(); moves.length > 0; moves = moving()) {
        // The next generation is written over the one before its base, unless that is being read.
        giveUpOlder(moves)
        if (patienceMs <= 0) break
        await clock.sleep(giveWayMs.look, signal)
        patienceMs -= giveWayMs.look
      }
      lookedAt = clock.monotonic()
    }
    await rate.take(bytes, signal)
  }

  async function writeOne(lease: SlotLease, stored: Stored, signal: AbortSignal): Promise<void> {
    const name = slotName(lease)
    const { generation } = stored.manifest
    try {
      const keys = await copies.keysOf(lease, signal)
      if (keys === undefined) return
      // A process that ended right after a write has left both copies, which could fill the disk together for ever.
      const newest = await prune(lease, signal)
      // A newer one, for which the tmpfs has no room yet, must not make way for this one.
      if (newest !== undefined && isNewer(newest, stored.manifest))
        return note(name, newest, clock.monotonic(), versionOf(stored.manifest))
      note(name, await write(stored, keys.current, signal), clock.monotonic())
      refusals.set(name, undefined)
      await prune(lease, signal)
      tell(undefined)
    } catch (error) {
      signal.throwIfAborted()
      // A newer generation has replaced it meanwhile and will follow.
      if (isCheckpointError(error, 'NoSuchGeneration')) return
      // A newer one follows here, too, after the other slots that are due.
      if (error instanceof GaveWay) return void written.set(name, dueNow(written.get(name)))
      const isFull = isCheckpointError(error, 'DiskFull', 'DiskShareFull')
      const hasDropped = isFull && (await dropBefore(lease, stored, signal))
      const before = hasDropped ? undefined : written.get(name)
      written.set(name, { on: before?.on, version: before?.version ?? '', at: clock.monotonic() })
      log.warn({ err: error, slot: name, generation }, 'cannot write a generation to the disk')
      if (!isCheckpointError(error, 'DiskShareFull')) return tell(reasonOf(error))
      refusals.set(name, error.code)
      // The disk could be written to. It is still as full as it was.
      if (trouble?.reason !== 'DiskFull') tell(undefined)
    }
  }

  /** Removes all copies of a slot but the newest one, and returns that one. */
  async function prune(lease: SlotLease, signal: AbortSignal): Promise<Copy | undefined> {
    const all = (await copies.of(lease, signal)) ?? []
    // One of an epoch that has not begun is forged, and must not replace the others.
    const [newest, ...older] = all.filter(({ epoch }) => epoch <= lease.epoch)
    for (const { file } of older) await disk.remove(file)
    return newest
  }

  /**
   * Removes older copies of earlier keys, for which there is no room beside the new one. They count to the share of the namespace,
   * unlike one of the present key, so they would keep the new one out for ever. Returns true if there were any.
   */
  async function dropBefore(lease: SlotLease, { manifest }: Stored, signal: AbortSignal): Promise<boolean> {
    const all = (await copies.of(lease, signal)) ?? []
    const older = all.filter(copy => copy.isBefore && !isNewer(copy, manifest))
    for (const { file } of older) await disk.remove(file)
    return older.length > 0
  }

  /** Forgets the refusals of slots that this node does not write any more. */
  function forgetRefusals(): void {
    const names = new Set([...held(), ...resting()].filter(mayAdd).map(slotName))
    refusals.keepOnly(names)
  }

  async function sweep(signal: AbortSignal): Promise<void> {
    // Acts on a complete list only: the files of an omitted slot would be lost for good.
    const known = slots()
    if (known === undefined || disk.tags().size === 0) return
    const wanted = new Map<string, string | undefined>()
    for (const lease of known) {
      const keys = await copies.keysOf(lease, signal)
      if (keys === undefined) continue
      for (const { tag } of [keys.current, ...keys.before]) wanted.set(tag, lease.namespace)
    }
    for (const tag of [...unwantedSince.keys()]) if (wanted.has(tag)) unwantedSince.delete(tag)
    for (const tag of disk.tags()) {
      if (wanted.has(tag)) continue
      const since = unwantedSince.get(tag) ?? clock.monotonic()
      unwantedSince.set(tag, since)
      if (clock.monotonic() - since < sweepAfterMs) wanted.set(tag, undefined)
    }
    const removed = await disk.sweep({ complete: true, tags: wanted })
    if (removed > 0) log.info({ files: removed }, 'files of unwanted slots removed')
    const names = new Set(known.map(slotName))
    for (const name of [...written.keys()]) if (!names.has(name)) written.delete(name)
    for (const name of [...recalled]) if (!names.has(name)) recalled.delete(name)
    for (const name of [...againAt.keys()]) if (!names.has(name)) againAt.delete(name)
    const tags = disk.tags()
    for (const tag of [...unwantedSince.keys()]) if (!tags.has(tag)) unwantedSince.delete(tag)
  }

  /** True if the slot has another copy to fall back on when this generation leaves the tmpfs. */
  async function isSpare(
    stored: Stored,
    lease: SlotLease,
    { mayWrite, signal }: { readonly mayWrite: boolean; readonly signal: AbortSignal },
  ): Promise<boolean> {
    // The source kept it only as a base of differences, and never restores it here.
    if (lease.node === node && !isResting(lease, node)) return true
    const keys = await copies.keysOf(lease, signal)
    if (keys === undefined) return false
    // One file is enough: otherwise, a full tmpfs would have every generation written to the disk.
    if ((await copies.of(lease, signal))?.length) return true
    if (!mayWrite || !mayAdd(lease)) return false
    const { slot, epoch, generation } = stored.manifest
    const release = store.retain(slot, generation, epoch)
    try {
      note(slotName(slot), await disk.write(stored, keys.current, { signal }), clock.monotonic())
      return true
    } finally {
      release()
    }
  }

  async function relieveNow(bytes: number, namespace: string): Promise<void> {
    const signal = AbortSignal.timeout(30_000)
    const moves = moving()
    const isUrgent = moves.some(slot => parseSlotKey(slot)?.namespace === namespace)
    if (isUrgent) await giveWay(namespace, isUrgent)
    const leases = new Map((slots() ?? []).map(lease => [slotName(lease), lease]))
    const newest = new Set(store.list().flatMap(({ manifest }) => store.latest(manifest.slot)?.dir ?? []))
    const older = store
      .list()
      .filter(({ dir }) => !newest.has(dir))
      .sort((a, b) => a.completedAt - b.completedAt)
    for (const stored of older) {
      if (store.roomFor(namespace) >= bytes) return
      // The node has room, but the namespace has used up its share.
      const isShareUsed = store.room >= bytes
      if (isShareUsed && stored.manifest.slot.namespace !== namespace) continue
      const lease = leases.get(slotName(stored.manifest.slot))
      try {
        if (
          lease === undefined ||
          !(await isSpare(stored, lease, { mayWrite: moves.length === 0 && !isShareUsed, signal }))
        )
          continue
        const { slot, epoch, generation } = stored.manifest
        await store.drop(slot, generation, epoch)
        log.info({ slot: slotName(slot), generation }, 'older generation removed to free tmpfs')
      } catch (error) {
        log.warn({ err: error }, 'cannot remove an older generation')
      }
    }
    if (store.roomFor(namespace) < bytes) await giveWay(namespace, isUrgent)
  }

  return {
    async run(signal) {
      while (!signal.aborted) {
        wake = Promise.withResolvers()
        // A slot that moves twice has two beginnings, also if nothing is written in between.
        moving()
        try {
          await recall(signal)
          forgetRefusals()
          await sweep(signal)
          const due = nextDue()
          if (due !== undefined) {
            await writeOne(due.lease, due.stored, signal)
            continue
          }
        } catch (error) {
          if (signal.aborted) return
          log.warn({ err: error }, 'cannot maintain the generations on the disk')
          tell(reasonOf(error))
        }
        const over = new AbortController()
        const pause = clock.sleep(lookMs, AbortSignal.any([signal, over.signal])).catch(() => undefined)
        await Promise.race([pause, wake.promise])
        over.abort()
      }
    },
    noted: () => wake.resolve(),
    recall,
    async *others(lease, signal) {
      for (const sealed of (await copies.of(lease, signal)) ?? []) {
        const { slot, epoch, generation } = sealed
        if (epoch > lease.epoch || store.open(slot, generation, epoch) !== undefined) continue
        const stored = await readOne(sealed, signal)
        if (stored !== 'corrupt' && !('error' in stored)) yield stored
      }
    },
    relieve(bytes, namespace) {
      // One call at a time: a second call need not free what the first one has freed.
      relieving = relieving.then(() => relieveNow(bytes, namespace))
      return relieving
    },
    onDisk: slot => written.get(slot)?.on,
    isRead: slot => {
      const all = slots()
      if (recalled.has(slot) || all === undefined) return all !== undefined
      // A key that is missing hides nothing there.
      if (disk.tags().size === 0) return true
      return !all.some(lease => lease.seal !== undefined && slotName(lease) === slot)
    },
    get trouble() {
      return trouble
    },
    refusalOf: refusals.of,
    get refusals() {
      return refusals.reasons
    },
  }
}
