import type { GenerationDisk, Sealed } from '../../checkpoint/disk/disk.ts'
import type { GenerationKey } from '../../checkpoint/disk/generation-key.ts'
import type { GenerationStore, Stored } from '../../checkpoint/store.ts'

/** The reason of a write that was given up for a newer generation. */
export class GaveWay extends Error {}

export interface Writer {
  /** Writes a generation to the disk. It stays in the tmpfs until then. @throws GaveWay, CheckpointError, the signal's reason. */
  write(stored: Stored, key: GenerationKey, signal: AbortSignal): Promise<Sealed>
  /**
   * Gives up the write of a generation of the namespace that is not the newest any more: it is in the tmpfs only for this write, and
   * a newer one is written next.
   */
  giveWay(namespace: string): Promise<void>
}

/** @param pace called before each piece of a file. */
export function createWriter(
  disk: Pick<GenerationDisk, 'write'>,
  store: Pick<GenerationStore, 'latest' | 'retain' | 'removed'>,
  pace: (bytes: number, signal: AbortSignal) => Promise<void>,
): Writer {
  let writing:
    | { readonly stored: Stored; readonly stop: AbortController; readonly over: Promise<void> }
    | undefined
  return {
    async write(stored, key, signal) {
      const { slot, epoch, generation } = stored.manifest
      const release = store.retain(slot, generation, epoch)
      const stop = new AbortController()
      const over = Promise.withResolvers<void>()
      writing = { stored, stop, over: over.promise }
      const either = AbortSignal.any([signal, stop.signal])
      try {
        return await disk.write(stored, key, { signal: either, pace: bytes => pace(bytes, either) })
      } finally {
        writing = undefined
        release()
        over.resolve()
      }
    },
    async giveWay(namespace) {
      if (writing === undefined) return
      const { stored, stop, over } = writing
      const { slot } = stored.manifest
      if (slot.namespace !== namespace || store.latest(slot)?.dir === stored.dir) return
      stop.abort(new GaveWay('a newer generation needs the room'))
      await over
      await store.removed()
    },
  }
}
