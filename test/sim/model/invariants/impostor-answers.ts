/** ImpostorAnswers: an app that was started in place of one whose memory is kept answers for its slot. */
import type { NumberedSlotLease } from '../../../../src/api/numbered-slot.ts'
import { slotName } from '../../../../src/checkpoint/manifest.ts'
import type { Ground } from './ground.ts'
import type { SavedGenesis } from './impostor-saved.ts'
import type { ServedSlot } from './served-slots.ts'

export function impostorAnswers(
  { cluster, bounds, violate, health }: Ground,
  saved: SavedGenesis,
): (slots: readonly ServedSlot[], elapsed: number) => void {
  const impostors = new Map<string, number>()
  /** True if a machine has a copy of this life, whatever its agent reports. */
  const isKept = (lease: NumberedSlotLease) =>
    cluster.nodes.some(
      ({ machine, volatile }) => machine.up && (volatile.shelf.get(slotName(lease))?.length ?? 0) > 0,
    )
  return (slots, elapsed) => {
    for (const { name, lease, pod, node, answer, works } of slots) {
      const of = saved.get(`${name} app`)
      const isImpostor =
        works &&
        node !== undefined &&
        health.isAtWork(node) &&
        of !== undefined &&
        answer !== undefined &&
        answer.pod.uid === pod?.metadata.uid &&
        answer.app.memory.genesis !== of &&
        isKept(lease)
      const ms = isImpostor ? (impostors.get(name) ?? 0) + elapsed : 0
      impostors.set(name, ms)
      if (ms > bounds.impostorMs)
        violate(
          'ImpostorAnswers',
          `${name} ${answer?.pod.uid}`,
          `who asks for slot ${lease.slot} is answered by what was started in ${answer?.pod.name} for ${ms} ms`,
        )
    }
    for (const each of impostors.keys()) if (!slots.some(({ name }) => name === each)) impostors.delete(each)
  }
}
