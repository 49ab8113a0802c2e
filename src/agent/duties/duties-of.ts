import { slotName } from '../../checkpoint/manifest.ts'
import type { Duty } from './duty.ts'
import { ofHolder } from './holder-duties.ts'
import { isFor, isFreeUnderstudy } from './pod-facts.ts'
import { ofLeftOnStage, ofLosers, ofPrimary } from './primary-duties.ts'
import type { Snapshot } from './snapshot.ts'
import { ofGate, ofUnderstudy, ofUnnamed } from './understudy-duties.ts'

/** Returns what this node should do now. Pure; the order means nothing. */
export function dutiesOf(snapshot: Snapshot): Duty[] {
  const pods = new Map(snapshot.pods.map(pod => [pod.uid, pod]))
  const primaries = new Set(snapshot.slots.map(({ holder }) => holder.uid))
  const slots = snapshot.slots.map(lease => ({ lease, name: slotName(lease) }))
  const duties: Duty[] = []
  for (const slot of slots) {
    const pod = pods.get(slot.lease.holder.uid)
    if (pod !== undefined) duties.push(...ofPrimary(snapshot, slot, pod))
    else duties.push(...ofHolder(snapshot, slot))
    duties.push(...ofLosers(snapshot, slot))
  }
  for (const pod of snapshot.pods) duties.push(...ofGate(pod), ...ofLeftOnStage(snapshot, pod))
  for (const pod of snapshot.pods) {
    if (primaries.has(pod.uid)) continue
    if (!isFreeUnderstudy(snapshot, pod)) {
      duties.push(...ofUnnamed(snapshot, pod))
      continue
    }
    duties.push(
      ...ofUnderstudy(
        snapshot,
        slots.filter(({ lease }) => isFor(lease, pod)),
        pod,
      ),
    )
  }
  return duties
}
