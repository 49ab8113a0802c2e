import { isFencedOff, isLongOutOfReach, isOutOfReach } from '../../slot/decide/fence/verdict.ts'
import { mayBeginAnew, usedHeirOf } from '../../slot/decide/grant.ts'
import { isGone } from '../../slot/decide/knowledge.ts'
import type { MemoryView, SlotMemory } from '../../slot/decide/memory-view.ts'
import type { LossReason } from '../../slot/decide/snapshot.ts'
import { mayComplete } from '../completion.ts'
import type { PodView, Snapshot } from '../snapshot.ts'
import { failureOf } from './losses.ts'
import type { PrimarySets } from './primary-sets.ts'

/** A primary that another pod is to replace. */
export interface Failure {
  readonly pod: PodView
  readonly reason: LossReason
  /** It may still serve, or serve again, with the memory of the slot: its agent has to end it first. */
  readonly mayServe: boolean
}

export function failures(s: Snapshot, { slots }: MemoryView, cast: PrimarySets): Failure[] {
  return cast.primaries.flatMap((pod): Failure[] => {
    if (pod.slot === undefined || pod.waking || pod.stage?.promoting || cast.slotless.includes(pod)) return []
    const slot = slots.get(pod.slot)
    // A pod that began a new incarnation of the slot may die before its Lease names it.
    const isNamed = slot === undefined || slot.lease.holder.uid === pod.uid
    if (!isNamed && !(pod.stage?.died && pod.epoch > slot.lease.epoch)) return []
    const isUntold = isUntoldDeath(s, slot, pod)
    const reason = isUntold || pod.stage?.ended ? 'Ended' : 'Died'
    const died = { pod, reason, mayServe: false } as const
    if (usedHeirOf(slot) !== undefined) return [died]
    if (untilEndTold(s, pod) > 0) return []
    const isEmpty = pod.stage?.understudy === true && pod.stage.failed !== undefined
    if (pod.stage?.died || isEmpty || (isUntold && slot?.remains !== true)) return [died]
    if (isFencedOff(s, slot)) return [{ pod, reason: 'NodeLost', mayServe: false }]
    const why = failing(s, slot, pod)
    return why === undefined || isOutOfReach(s, slot) ? [] : [{ pod, reason: why, mayServe: true }]
  })
}

/**
 * Returns the ms for which a death does not count yet, because the app may have ended with success: the kubelet tells it a second
 * or so after the agent.
 */
export function untilEndTold(s: Snapshot, { endUntold, unreadySince }: PodView): number {
  if (endUntold === undefined || unreadySince === undefined || !mayComplete(s.set)) return 0
  return unreadySince + endUntold - s.now
}

/** Returns the slots whose primaries another pod is to replace, and no agent can stop. */
export const unwanted = (
  s: Snapshot,
  { slots }: MemoryView,
  primaries: readonly PodView[],
): ReadonlySet<number> =>
  new Set(
    primaries.flatMap(pod =>
      pod.slot !== undefined &&
      isLongOutOfReach(s, slots.get(pod.slot)) &&
      failing(s, slots.get(pod.slot), pod) !== undefined
        ? [pod.slot]
        : [],
    ),
  )

/** Returns why a primary is to be replaced that may still serve. */
const failing = (s: Snapshot, slot: SlotMemory | undefined, pod: PodView): LossReason | undefined =>
  isUntoldDeath(s, slot, pod) ? 'Ended' : failureOf(s, pod)

/** How long to wait for an agent that is away to report a death, ms. A running agent reports it at once. */
const tellingMs = 15_000

/** True if a grant keeps the slot from beginning another incarnation in place. */
export const waitsToBegin = (slot: SlotMemory | undefined, pod: PodView): boolean =>
  isEmptied(slot, pod) && !mayBeginAnew(slot)

const isEmptied = (slot: SlotMemory | undefined, pod: PodView): boolean =>
  isReplaced(slot, pod) && pod.stage?.understudy === false && isGone(slot)

/** The kubelet has started another app in the primary, and no node has, or may have, the memory of the app before. */
export function beganAnew({ slots }: MemoryView, pod: PodView): boolean {
  const slot = slots.get(pod.slot ?? -1)
  return isEmptied(slot, pod) && mayBeginAnew(slot)
}

/**
 * The kubelet has started another app in the primary, but the memory of the app before is kept, or the pod is an
 * understudy: this is a death that no agent has reported, and not the beginning of another incarnation.
 */
const isUntoldDeath = (s: Snapshot, slot: SlotMemory | undefined, pod: PodView): boolean =>
  isReplaced(slot, pod) &&
  s.monotonicNow - slot.replacedSince >= tellingMs &&
  (pod.stage?.understudy === true || !isGone(slot))

/** Another app, or a part of another one, runs in this pod than the one whose memory the slot keeps. */
export const isReplaced = (
  slot: SlotMemory | undefined,
  pod: Pick<PodView, 'uid'>,
): slot is SlotMemory & { readonly replacedSince: number } =>
  slot?.replacedSince !== undefined && slot.lease.holder.uid === pod.uid

/** Returns the ms until a death that no agent reports counts as reported; undefined if there is none to wait for. */
export function untilDeath(s: Snapshot): number | undefined {
  const untold = s.pods.map(pod => untilEndTold(s, pod)).filter(ms => ms > 0)
  const left = [...(s.memory?.slots.values() ?? [])].flatMap(({ replacedSince }) => {
    const ms = replacedSince === undefined ? 0 : replacedSince + tellingMs - s.monotonicNow
    return ms > 0 ? [ms] : []
  })
  const all = [...left, ...untold]
  return all.length === 0 ? undefined : Math.min(...all)
}
