import type { Random } from '../../kube/random.ts'
import type { MemoryView } from '../memory/view.ts'
import type { Action, Role } from '../plan.ts'
import type { PodView, Snapshot } from '../snapshot.ts'
import { isHandedOver, type Turn, turnOf, withoutSuccessor } from './handover.ts'
import { podNamer } from './name.ts'
import { awayFrom, relaysOf } from './relay.ts'
import { kindsOfMemory } from './revisions.ts'
import { rollBackups } from './rollout.ts'
import type { Policies } from './select.ts'
import { roleIn } from './slots.ts'
import { promotion } from './successors.ts'
import { remove } from './tools.ts'
import { isGivenUp, updateOf } from './update.ts'

/**
 * The next step from an old template to the new one, for a set that keeps memory and whose numbers are exact: cold
 * backups, hot ones, then slots one by one. A slot whose memory fits the new template goes over with it: its primary
 * stands still, its last generation is brought to an understudy, and that one goes on. Other memory is given up only
 * where the set says so, and after an event.
 */
export function rolloutWithMemory(
  s: Snapshot,
  memory: MemoryView,
  random: Random,
  policies: Policies,
): Action[] {
  const turn = turnOf(s)
  // Somebody asked for it: a roll waits until it is done.
  if (turn?.requested) return handOver(s, turn)
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
  if (turn.successor !== undefined) return handOver(s, turn)
  // The loser goes when its successor serves: until then the Lease names it.
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

/** Of the set's template as it is now, where the memory is, and not beside the primary: it could not be handed over there. */
function makeRelay(s: Snapshot, random: Random): Action[] {
  const slot = withoutSuccessor(s)
  if (slot === undefined) return []
  const successorOf = { slot: slot.lease.slot, near: awayFrom(slot), notOn: slot.lease.node }
  return [
    {
      ...{ type: 'create', kind: 'hotbackup', name: podNamer(s, random)(), role: undefined, successorOf },
      strategy: s.set.strategy.unallocatedToHotbackup,
    },
  ]
}

/** The swap, once the primary's last generation is where its successor is: until then its Lease asks it to stand still. */
const handOver = (s: Snapshot, turn: Turn): Action[] =>
  turn.successor !== undefined && isHandedOver(turn, s)
    ? [{ ...promotion(turn.slot, turn.successor, roleOf(s, turn), s), standing: turn.slot.lease }]
    : []

const roleOf = (s: Snapshot, { primary, slot }: Turn): Role =>
  roleIn(s, slot.lease.slot, {
    name: primary.name,
    slot: slot.lease.slot,
    epoch: primary.epoch,
    reason: 'Replaced',
    seenAt: s.monotonicNow,
  })

/** Every slot that has an heir could go on there: one more understudy may go. */
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
 * Backups that no memory of the set fits, one at a time, so that others are made that some fits: what is left when a
 * template is taken back in the middle of a roll.
 */
function misfitsOf(s: Snapshot): Action[] {
  const kinds = kindsOfMemory(s)
  if (kinds.size === 0) return []
  const isMisfit = ({ kind, stage }: PodView) =>
    kind !== 'primary' && stage?.restoreHash !== undefined && !kinds.has(stage.restoreHash)
  const [first] = s.pods.filter(isMisfit).sort((a, b) => (a.name < b.name ? -1 : 1))
  return first === undefined ? [] : [remove(first, 'Misfit')]
}
