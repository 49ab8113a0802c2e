import type { GenerationDisk, Sealed } from '../../checkpoint/disk/disk.ts'
import type { GenerationKey } from '../../checkpoint/disk/generation-key.ts'
import { slotName } from '../../checkpoint/manifest.ts'
import type { GenerationStore, Stored } from '../../checkpoint/store.ts'
import { abortAfter, linkedTo, unlessAborted } from '../../kube/abort.ts'
import type { Clock } from '../../kube/clock.ts'

/** The reason of a write that was given up for a newer generation. */
export class GaveWay extends Error {}

export interface Writer {
  /** Writes a generation to the disk. It stays in the tmpfs until then. @throws GaveWay, CheckpointError, the signal's reason. */
  write(stored: Stored, key: GenerationKey, signal: AbortSignal): Promise<Sealed>
  /**
   * Gives up the write of a generation of the namespace that the store keeps only for this write. Unless it is urgent, the
   * third write of a slot in a row continues, so that the disk gets a copy in the end.
   */
  giveWay(namespace: string, isUrgent: boolean): Promise<void>
  /** Gives up the write of a generation of these slots that is not the newest of its slot; not the third write in a row. */
  giveUpOlder(slots: readonly string[]): void
}

/** How many writes of a slot in a row may be given up, unless it is urgent. */
const mostInRow = 2
/** Longest wait for the end of a write, ms: a disk may hang. */
const patienceMs = 1_000

interface Writing {
  readonly stored: Stored
  readonly stop: AbortController
  readonly over: Promise<void>
}

/** @param pace called after each piece of a file. */
export function createWriter(
  {
    disk,
    store,
    clock,
  }: {
    readonly disk: Pick<GenerationDisk, 'write'>
    readonly store: Pick<GenerationStore, 'latest' | 'list' | 'retain' | 'removed'>
    readonly clock: Pick<Clock, 'sleep'>
  },
  pace: (bytes: number, signal: AbortSignal) => Promise<void>,
): Writer {
  let writing: Writing | undefined
  /** How many writes of each slot have been given up since one came to its end. */
  const inRow = new Map<string, number>()
  const timesOf = (stored: Stored) => inRow.get(slotName(stored.manifest.slot)) ?? 0

  function giveUp({ stored, stop }: Writing, why: string) {
    // The write of before may still close its file.
    if (stop.signal.aborted) return
    inRow.set(slotName(stored.manifest.slot), timesOf(stored) + 1)
    stop.abort(new GaveWay(why))
  }

  async function write(stored: Stored, key: GenerationKey, signal: AbortSignal): Promise<Sealed> {
    const { slot, epoch, generation } = stored.manifest
    const release = store.retain(slot, generation, epoch)
    using stop = linkedTo(signal)
    const over = Promise.withResolvers<void>()
    writing = { stored, stop, over: over.promise }
    const present = new Set([stored, ...store.list()].map(({ manifest }) => slotName(manifest.slot)))
    for (const slot of [...inRow.keys()]) if (!present.has(slot)) inRow.delete(slot)
    const pacing = (bytes: number) => pace(bytes, stop.signal)
    try {
      const sealed = await disk.write(stored, key, { signal: stop.signal, pace: pacing })
      inRow.delete(slotName(slot))
      return sealed
    } finally {
      writing = undefined
      release()
      over.resolve()
    }
  }

  return {
    write,
    giveUpOlder(slots) {
      if (writing === undefined || timesOf(writing.stored) >= mostInRow) return
      const { dir, manifest } = writing.stored
      if (slots.includes(slotName(manifest.slot)) && store.latest(manifest.slot)?.dir !== dir)
        giveUp(writing, 'a newer generation is about to arrive')
    },
    async giveWay(namespace, isUrgent) {
      if (writing === undefined) return
      const { stored, over } = writing
      const isKept = store.list().some(({ dir }) => dir === stored.dir)
      if (stored.manifest.slot.namespace !== namespace || isKept) return
      if (!isUrgent && timesOf(stored) >= mostInRow) return
      giveUp(writing, 'a newer generation needs the room')
      using late = abortAfter(clock, patienceMs, () => new Error('the disk hangs'))
      await unlessAborted(over, late.signal).catch(() => undefined)
      await store.removed()
    },
  }
}
