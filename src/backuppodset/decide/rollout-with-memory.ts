import type { Random } from '../../kube/random.ts'
import type { Role } from '../../slot/decide/actions.ts'
import { grantedElsewhere, mayBeginAnew, mayCall } from '../../slot/decide/grant.ts'
import { isHandedOver, standsUntil } from '../../slot/decide/handover.ts'
import type { MemoryView, SlotMemory } from '../../slot/decide/memory-view.ts'
import { promotion } from '../../slot/decide/successors.ts'
import type { Action } from '../plan.ts'
import type { PodView, Snapshot } from '../snapshot.ts'
import { type Turn, turnOf, withoutSuccessor } from './handover-turns.ts'
import { withoutTarget } from './moves.ts'
import { podNamer } from './name.ts'
import { roleIn } from './primary-sets.ts'
import { awayFrom, relaysOf } from './relay.ts'
import { kindsOfMemory, revisionFor } from './revisions.ts'
import { rollBackups } from './rollout.ts'
import type { Policies } from './select.ts'
import { remove } from './tools.ts'
import { isGivenUp, updateOf } from './update.ts'

/**
 * Returns the next step from an old template to the new one, for a set that keeps memory and whose numbers are exact:
 * cold backups, hot ones, then slots one by one. A slot whose memory fits the new template is handed over with it: the
 * agent stops the primary, an understudy receives the last generation and resumes it. Other memory is given up only
 * where the set says so, and after an event.
 */
export function rolloutWithMemory(
  s: Snapshot,
  memory: MemoryView,
  random: Random,
  policies: Policies,
): Action[] {
  const turn = turnOf(s)
  // Nothing delays the handover of a primary that is stopped.
  const targets = turn?.slot.lease.handover === undefined ? makeTargets(s, random) : []
  if (targets.length > 0) return targets
  // A requested handover comes first: a roll waits until it is done.
  if (turn?.requested) return handOver(s, memory, turn)
  if (s.set.suspended) return []
  const misfits = misfitsOf(s)
  if (misfits.length > 0) return misfits
  if (s.set.updateStrategy !== 'RollingUpdate') return []
  const { stranded, blocked } = updateOf(s)
  if (blocked) return []
  const untold = stranded.filter(slot => !isGivenUp(s, slot))
  if (untold.length > 0)
    return untold.map(slot => ({
      type: 'giveUp',
      slot,
      lease: { ...slot.lease, handover: undefined, givenUpFor: s.templateHash },
    }))

  const backups = rollBackups(s, random, policies, () => isCovered(s, memory), relaysOf(s))
  if (backups !== undefined) return backups

  if (turn === undefined) return makeRelay(s, random)
  if (turn.successor !== undefined) return handOver(s, memory, turn)
  if (!mayBeginAnew(turn.slot)) return []
  // The loser stays until its successor serves: until then the Lease names the loser.
  return [
    {
      type: 'create',
      kind: 'primary',
      name: podNamer(s, random)(),
      strategy: s.set.strategy.unallocatedToReplicas,
      role: roleOf(s, turn),
    },
  ]
}

/**
 * Returns the pods for other moves of a set whose next handover is about to begin. They come before the write that stops its primary:
 * from then on nothing may delay the swap. Every other write of a Lease may be one for which clients wait, and comes first.
 */
export function targetsBeforeStop(s: Snapshot, random: Random, planned: readonly Action[]): Action[] {
  const begins =
    planned.length > 0 && planned.every(each => each.type === 'writeSlot' && each.requestsHandover)
  const isAnyStopped = [...(s.memory?.slots.values() ?? [])].some(({ lease }) => lease.handover !== undefined)
  return begins && !isAnyStopped ? makeTargets(s, random) : []
}

/**
 * Returns the swap of a handover for which a primary is stopped, whatever else the plan has to do first: a creation may be refused on
 * every pass. Nothing if the plan has something to do with the two pods or their slot.
 */
export function swapInProgress(s: Snapshot, memory: MemoryView, planned: readonly Action[]): Action[] {
  const turn = turnOf(s)
  if (turn === undefined || turn.successor === undefined) return []
  const { primary, successor, slot } = turn
  if (slot.lease.handover !== successor.uid) return []
  const isBusy = planned.some(
    action =>
      ('pod' in action && (action.pod.uid === primary.uid || action.pod.uid === successor.uid)) ||
      ('role' in action && action.role?.slot === slot.lease.slot) ||
      (action.type === 'writeSlot' && action.lease.slot === slot.lease.slot),
  )
  return isBusy ? [] : handOver(s, memory, turn)
}

/**
 * Makes a hot backup of the current template near the memory, but not on the primary's node: no handover is possible
 * there.
 */
function makeRelay(s: Snapshot, random: Random): Action[] {
  const slot = withoutSuccessor(s)
  if (slot === undefined) return []
  return [madeAway(s, slot, podNamer(s, random)())]
}

/** Makes hot backups for moves, on nodes where the moves may go. One that cannot be made keeps no other waiting. */
function makeTargets(s: Snapshot, random: Random): Action[] {
  const name = podNamer(s, random)
  return withoutTarget(s).flatMap(({ slot, move }): Action[] => {
    const { restoreHash = '' } = slot.lease
    const revision = restoreHash === s.restoreHash ? undefined : revisionFor(s, restoreHash)
    if (restoreHash !== s.restoreHash && revision === undefined) return []
    const { nodeSelector, avoid = [], uid: migration } = move
    const made = madeAway(s, slot, name())
    const near = made.successorOf.near.filter(node => !avoid.includes(node))
    return [
      {
        ...made,
        successorOf: { ...made.successorOf, near, avoid, nodeSelector, migration },
        ...(revision && { revision }),
      },
    ]
  })
}

/** Returns the creation of a hot backup that can take this slot, off the node of its primary. */
const madeAway = (s: Snapshot, slot: SlotMemory, name: string) =>
  ({
    type: 'create',
    kind: 'hotbackup',
    name,
    role: undefined,
    successorOf: { slot: slot.lease.slot, near: awayFrom(slot), notOn: slot.lease.node },
    strategy: s.set.strategy.unallocatedToHotbackup,
  }) as const

/**
 * Returns the swap once the primary's last generation is on the successor's node. Until then the Lease asks the agent
 * to keep the primary stopped.
 */
function handOver(s: Snapshot, memory: MemoryView, turn: Turn): Action[] {
  const { slot, successor } = turn
  if (successor === undefined || !mayCall(slot, successor.uid) || !isHandedOver(turn, s)) return []
  if (grantedElsewhere(memory, successor.uid, slot.lease.slot).length > 0) return []
  const promoted = promotion(slot, successor, roleOf(s, turn), s)
  return [
    {
      ...promoted,
      lease: { ...promoted.lease, handedOverBy: slot.lease.holder.uid },
      standing: { lease: slot.lease, until: standsUntil(slot) },
    },
  ]
}

const roleOf = (s: Snapshot, { primary, slot }: Turn): Role =>
  roleIn(s, slot.lease.slot, {
    name: primary.name,
    slot: slot.lease.slot,
    epoch: primary.epoch,
    reason: 'Replaced',
    seenAt: s.monotonicNow,
  })

/** True if every slot that has an heir could be restored there, so that one more understudy may be deleted. */
function isCovered(s: Snapshot, memory: MemoryView): boolean {
  return [...memory.slots.values()].every(slot => {
    const heir = s.pods.find(({ uid }) => uid === slot.lease.heir?.uid)
    if (heir === undefined || isGivenUp(s, slot)) return true
    return slot.copies.some(
      ({ node, report }) => node === heir.node && report.usable !== undefined && report.usable !== 'Cold',
    )
  })
}

/**
 * Deletes backups that fit no memory of the set, one at a time, so that fitting ones are made in their place. They are
 * left over when a template is taken back in the middle of a roll.
 */
function misfitsOf(s: Snapshot): Action[] {
  const kinds = kindsOfMemory(s)
  if (kinds.size === 0) return []
  const isMisfit = ({ kind, stage }: PodView) =>
    kind !== 'primary' && stage?.restoreHash !== undefined && !kinds.has(stage.restoreHash)
  const [first] = s.pods.filter(isMisfit).sort((a, b) => (a.name < b.name ? -1 : 1))
  return first === undefined ? [] : [remove(first, 'Misfit')]
}
