import type { GenerationDisk, Sealed } from '../../checkpoint/disk/disk.ts'
import type { GenerationKey } from '../../checkpoint/disk/generation-key.ts'
import { slotName } from '../../checkpoint/manifest.ts'
import type { GenerationStore, Stored } from '../../checkpoint/store.ts'
import type { Clock } from '../../kube/clock.ts'

/** The reason of a write that was given up for a newer generation. */
export class GaveWay extends Error {}

export interface Writer {
  /** Writes a generation to the disk. It stays in the tmpfs until then. @throws GaveWay, CheckpointError, the signal's reason. */
  write(stored: Stored, key: GenerationKey, signal: AbortSignal): Promise<Sealed>
  /**
   * Gives up the write of a generation of the namespace that the store keeps only for this write. Not again and again, so that the
   * disk gets a copy in the end, unless it is urgent.
   */
  giveWay(namespace: string, isUrgent: boolean): Promise<void>
}

/** How often one slot after the other gives way before one of its writes comes to its end. */
const mostInRow = 2
/** Longest wait for the end of a write, ms: a disk may hang. */
const patienceMs = 1_000

interface Writing {
  readonly stored: Stored
  readonly stop: AbortController
  readonly over: Promise<void>
}

/** @param pace called before each piece of a file. */
export function createWriter(
  {
    disk,
    store,
    clock,
  }: {
    readonly disk: Pick<GenerationDisk, 'write'>
    readonly store: Pick<GenerationStore, 'list' | 'retain' | 'removed'>
    readonly clock: Pick<Clock, 'sleep'>
  },
  pace: (bytes: number, signal: AbortSignal) => Promise<void>,
): Writer {
  let writing: Writing | undefined
  /** How often the slot of the last write has given way, one time after the other. */
  let inRow = { slot: '', times: 0 }

  async function write(stored: Stored, key: GenerationKey, signal: AbortSignal): Promise<Sealed> {
    const { slot, epoch, generation } = stored.manifest
    const release = store.retain(slot, generation, epoch)
    const stop = new AbortController()
    const over = Promise.withResolvers<void>()
    writing = { stored, stop, over: over.promise }
    const name = slotName(slot)
    if (inRow.slot !== name) inRow = { slot: name, times: 0 }
    const either = AbortSignal.any([signal, stop.signal])
    try {
      const sealed = await disk.write(stored, key, { signal: either, pace: bytes => pace(bytes, either) })
      inRow = { slot: name, times: 0 }
      return sealed
    } finally {
      writing = undefined
      release()
      over.resolve()
    }
  }

  return {
    write,
    async giveWay(namespace, isUrgent) {
      if (writing === undefined) return
      const { stored, stop, over } = writing
      const isKept = store.list().some(({ dir }) => dir === stored.dir)
      if (stored.manifest.slot.namespace !== namespace || isKept) return
      if (!isUrgent && inRow.times >= mostInRow) return
      inRow = { ...inRow, times: inRow.times + 1 }
      stop.abort(new GaveWay('a newer generation needs the room'))
      const timer = new AbortController()
      await Promise.race([over, clock.sleep(patienceMs, timer.signal).catch(() => undefined)])
      timer.abort()
      await store.removed()
    },
  }
}
