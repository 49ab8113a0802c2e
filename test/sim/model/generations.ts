/** A store of generations in memory. Its content outlives the agent, but not the machine. */
import type { SlotKey } from '../../../src/api/slot-key.ts'
import { CheckpointError } from '../../../src/checkpoint/errors.ts'
import type { Draft, GenerationStore } from '../../../src/checkpoint/generation-store.ts'
import { type Manifest, newestFirst, slotName } from '../../../src/checkpoint/manifest.ts'
import type { Stored } from '../../../src/checkpoint/stored.ts'
import type { Clock } from '../../../src/kube/clock.ts'
import type { Party, VirtualTime } from './virtual-time.ts'
import type { Machine } from './world.ts'

/** Generations by `slotName`, the newest first. */
export type Shelf = Map<string, Stored[]>

/** Wakes other machines' agents, which wait at a shelf for something new. */
export interface ShelfNews {
  tell(slot: string): void
  /** Resolves when there is news, or after a second, because the machine may be gone by then. */
  wait(slot: string, party: Party, time: VirtualTime, signal: AbortSignal): Promise<void>
}

const lookAgainMs = 1_000

export function createShelfNews(): ShelfNews {
  const waiting = new Map<string, Set<() => void>>()
  return {
    tell(slot) {
      for (const wake of [...(waiting.get(slot) ?? [])]) wake()
    },
    async wait(slot, party, time, signal) {
      const told = new AbortController()
      const wakes = waiting.get(slot) ?? new Set()
      waiting.set(slot, wakes)
      const wake = () => time.after(party, 0, () => told.abort())
      wakes.add(wake)
      try {
        await time.clockOf(party).sleep(lookAgainMs, AbortSignal.any([signal, told.signal]))
      } catch (error) {
        if (signal.aborted) throw error
      } finally {
        wakes.delete(wake)
      }
    },
  }
}

/** @param images by directory: the saved memory. A copy of a generation for another slot has that of the original. */
export function createMemoryStore(
  shelf: Shelf,
  clock: Clock,
  nextName: () => string,
  images: Machine['images'] = new Map(),
): GenerationStore {
  const on = (slot: SlotKey) => shelf.get(slotName(slot)) ?? []
  const readers = new Map<string, number>()
  const waiting = new Set<() => void>()
  const put = (slot: SlotKey, list: Stored[]) => {
    if (list.length === 0) shelf.delete(slotName(slot))
    else shelf.set(slotName(slot), list)
  }
  const hold = (name: string) => {
    readers.set(name, (readers.get(name) ?? 0) + 1)
    let isHeld = true
    return () => {
      if (!isHeld) return
      isHeld = false
      readers.set(name, (readers.get(name) ?? 1) - 1)
      for (const look of [...waiting]) look()
    }
  }
  /** Resolves when no reader of the slot is left. */
  const received = (slot: SlotKey, signal: AbortSignal): Promise<void> =>
    new Promise((resolve, reject) => {
      const name = slotName(slot)
      const onAbort = () => {
        waiting.delete(look)
        reject(signal.reason)
      }
      const look = () => {
        if ((readers.get(name) ?? 0) > 0) return
        waiting.delete(look)
        signal.removeEventListener('abort', onAbort)
        resolve()
      }
      if (signal.aborted) reject(signal.reason)
      else {
        signal.addEventListener('abort', onAbort, { once: true })
        waiting.add(look)
        look()
      }
    })
  return {
    async begin(slot, generation): Promise<Draft> {
      const dir = nextName()
      const begunAt = clock.monotonic()
      return {
        ...{ slot, generation, dir },
        reserve: () => undefined,
        grow: () => undefined,
        takeSpare: () => undefined,
        needsSpare: false,
        room: () => Number.MAX_SAFE_INTEGER,
        async commit(manifest, options) {
          options?.signal?.throwIfAborted()
          const complete: Manifest = { ...manifest, files: [], bytes: 4096 }
          const newest = on(slot)[0]
          if (newest !== undefined && newestFirst(newest.manifest, complete) <= 0)
            throw new CheckpointError('Superseded', `generation ${generation}`)
          const original = [...shelf.values()]
            .flat()
            .find(({ manifest: it }) => it.takenAt === complete.takenAt && it.slot.name !== slot.name)
          const image = images.get(dir) ?? images.get(original?.dir ?? '')
          if (image !== undefined) images.set(dir, image)
          const now = clock.monotonic()
          const stored: Stored = {
            dir,
            manifest: complete,
            completedAt: now,
            pipelineMs: now - (options?.stoppedAt ?? begunAt),
          }
          put(
            slot,
            [...on(slot), stored].sort((a, b) => newestFirst(a.manifest, b.manifest)),
          )
          return stored
        },
        discard: async () => undefined,
      }
    },
    latest: slot => on(slot)[0],
    list: () => [...shelf.values()].flat(),
    open: (slot, generation, epoch) =>
      on(slot).find(
        ({ manifest: it }) => it.generation === generation && (epoch === undefined || it.epoch === epoch),
      ),
    prune: async (slot, keep) => put(slot, on(slot).slice(0, keep)),
    drop: async (slot, generation, epoch) =>
      put(
        slot,
        on(slot).filter(({ manifest: it }) => it.generation !== generation || it.epoch !== epoch),
      ),
    remove: async slot => put(slot, []),
    roomFor: () => Number.MAX_SAFE_INTEGER,
    removed: async () => undefined,
    get bytes() {
      return [...shelf.values()].flat().length * 4096
    },
    budget: 1e9,
    room: 1e9,
    lend: () => () => undefined,
    retain: slot => hold(`${slotName(slot)} read`),
    announceReader: slot => hold(slotName(slot)),
    // Nothing here only reads files.
    unread: received,
    received,
    load: async () => [],
  }
}
