import type { SlotKey } from '../../api/slot-key.ts'
import type { Manifest } from '../../checkpoint/manifest.ts'
import { newestFirst, slotName } from '../../checkpoint/manifest.ts'
import type { GenerationStore, Stored } from '../../checkpoint/store.ts'
import type { Told } from '../../slot/decide/age.ts'

/** Bytes of memory by container. */
export const memoryOf = ({ manifest }: Pick<Stored, 'manifest'>): ReadonlyMap<string, number> =>
  new Map(manifest.containers.map(({ name, memoryBytes }) => [name, memoryBytes]))

export const toldOf = ({ epoch, generation, takenAt }: Manifest): Told => ({
  ...{ epoch, generation },
  takenAt: Date.parse(takenAt),
})

/** Generations of a slot on this node, the newest first. */
export function generationsOf(store: Pick<GenerationStore, 'list'>, slot: SlotKey): Stored[] {
  const name = slotName(slot)
  return store
    .list()
    .filter(({ manifest }) => slotName(manifest.slot) === name)
    .sort((a, b) => newestFirst(a.manifest, b.manifest))
}
