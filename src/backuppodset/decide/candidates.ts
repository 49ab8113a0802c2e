/** Which backup takes which slot, of all that are to be filled now. */
import { grantedElsewhere, usedHeirOf } from '../../slot/decide/grant.ts'
import { match, type Option } from '../../slot/decide/match.ts'
import type { MemoryView, SlotMemory } from '../../slot/decide/memory-view.ts'
import {
  callable,
  callableWithoutGrant,
  candidatesOf,
  isAtHand,
  slowRank,
} from '../../slot/decide/successors.ts'
import type { PodView, Snapshot } from '../snapshot.ts'
import type { Failure } from './deaths.ts'

/** Backups in which memory can be restored. */
export interface Backups {
  readonly hot: readonly PodView[]
  readonly cold: readonly PodView[]
}

export interface Candidates {
  readonly all: readonly PodView[]
  readonly successorOf: (slot: number | undefined) => PodView | undefined
  /** Slots that wait for the end of a grant: of another slot, to their pod, or of their own, to a pod that has less at hand. */
  readonly waiting: ReadonlySet<number>
  /** Slots whose grants keep a pod from those. */
  readonly toRelease: ReadonlySet<number>
}

/** Gives each slot the best backup that the other slots leave to it. */
export function candidatesFor(
  s: Snapshot,
  memory: MemoryView,
  backups: Backups,
  failing: readonly Failure[],
  open: readonly SlotMemory[],
): Candidates {
  const all = callableBackups(memory, backups)
  const wishes = new Map([
    ...failing.map(({ pod: { slot = -1 }, mayServe }) => {
      const options = callable(s, memory.slots.get(slot), all)
      // A primary that may still serve is not given up for a start that takes seconds.
      return [slot, mayServe ? options.filter(({ rank }) => rank < slowRank) : options] as const
    }),
    ...open.map(slot => [slot.lease.slot, callable(s, slot, all)] as const),
  ])
  const waiting = new Set<number>()
  const toRelease = new Set<number>()
  const free = new Map<number, readonly Option[]>()
  for (const [slot, options] of wishes) {
    const granting = (uid: string) => grantedElsewhere(memory, uid, slot)
    const mine = options.filter(({ uid }) => granting(uid).length === 0)
    // A slot that is filled in the same pass has the better claim on the pod of its own grant.
    const lent = () =>
      options
        .filter(isAtHand)
        .map(({ uid }) => granting(uid))
        .find(others => others.length > 0 && others.every(other => !wishes.has(other)))
    const inTheWay = isHeldUp(s, memory.slots.get(slot), options, all)
      ? [slot]
      : mine.some(({ rank }) => rank < slowRank)
        ? undefined
        : lent()
    free.set(slot, inTheWay === undefined ? mine : [])
    if (inTheWay === undefined) continue
    waiting.add(slot)
    for (const each of inTheWay) toRelease.add(each)
  }
  const taken = match(free)
  return {
    ...{ all, waiting, toRelease },
    successorOf: slot => all.find(pod => slot !== undefined && pod.uid === taken.get(slot)),
  }
}

/** True if the grant of the slot keeps a pod from it that has the memory at hand, and the heir has not. */
const isHeldUp = (
  s: Snapshot,
  slot: SlotMemory | undefined,
  options: readonly Option[],
  pods: readonly PodView[],
): boolean =>
  slot !== undefined && !options.some(isAtHand) && callableWithoutGrant(s, slot, pods).some(isAtHand)

/**
 * A pod that was called to a slot and failed stays named there until another is: no two Leases name the same pod.
 */
function callableBackups(memory: MemoryView, { hot, cold }: Backups): readonly PodView[] {
  const named = new Set([...memory.slots.values()].map(({ lease }) => lease.holder.uid))
  const used = new Set([...memory.slots.values()].map(slot => usedHeirOf(slot)?.uid))
  const ready = candidatesOf(hot, cold)
  // A heir that has used its grant is called, whatever its state: it has the slot.
  const heirs = hot.filter(pod => used.has(pod.uid) && !ready.includes(pod))
  return [...ready, ...heirs].filter(({ uid }) => !named.has(uid))
}
