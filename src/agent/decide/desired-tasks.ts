import { slotName } from '../../checkpoint/manifest.ts'
import { isFor, isFreeUnderstudy } from '../observe/pod-facts.ts'
import type { Snapshot } from '../observe/snapshot.ts'
import { ofLeftGuarded, ofPeers, ofVotes } from './fence-tasks.ts'
import { ofClone, ofHolder } from './holder-tasks.ts'
import { ofLeftOnStage, ofLosers, ofPrimary, ofServices } from './primary-tasks.ts'
import type { Task } from './task.ts'
import { ofGate, ofUnderstudy, ofUnnamed } from './understudy-tasks.ts'

/** Returns what this node should do now. Pure; the order means nothing. */
export function desiredTasks(snapshot: Snapshot): Task[] {
  const pods = new Map(snapshot.pods.map(pod => [pod.uid, pod]))
  const primaries = new Set(snapshot.slots.map(({ holder }) => holder.uid))
  const slots = snapshot.slots.map(lease => ({ lease, name: slotName(lease) }))
  const tasks: Task[] = [...ofPeers(snapshot), ...ofVotes(snapshot), ...ofLeftGuarded(snapshot)]
  for (const slot of slots) {
    const pod = pods.get(slot.lease.holder.uid)
    if (pod !== undefined) tasks.push(...ofPrimary(snapshot, slot, pod))
    else tasks.push(...ofHolder(snapshot, slot), ...ofClone(snapshot, slot))
    tasks.push(...ofLosers(snapshot, slot))
  }
  for (const pod of snapshot.pods)
    tasks.push(...ofGate(pod), ...ofLeftOnStage(snapshot, pod), ...ofServices(pod))
  for (const pod of snapshot.pods) {
    if (primaries.has(pod.uid)) continue
    if (!isFreeUnderstudy(snapshot, pod)) {
      tasks.push(...ofUnnamed(snapshot, pod))
      continue
    }
    tasks.push(
      ...ofUnderstudy(
        snapshot,
        slots.filter(({ lease }) => isFor(lease, pod)),
        pod,
      ),
    )
  }
  return tasks
}
