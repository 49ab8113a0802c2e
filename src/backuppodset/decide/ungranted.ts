import { grantedElsewhere } from '../../slot/decide/grant.ts'
import type { MemoryView } from '../../slot/decide/memory-view.ts'
import type { PodView, Snapshot } from '../snapshot.ts'
import { msUntilReplaced, pausesOf } from './breaker.ts'
import { waitsToBegin } from './deaths.ts'
import type { Turn } from './handover-turns.ts'
import type { Suspension } from './suspension.ts'
import type { Takeovers } from './takeovers.ts'

interface Primaries {
  readonly taken: Pick<Takeovers, 'ungranted'>
  readonly suspension: Pick<Suspension, 'ungranted'> | undefined
  readonly healthy: readonly PodView[]
  readonly settled: readonly PodView[]
  readonly turn: Turn | undefined
}

/** Returns the slots that no pod may take without the operator now: their grants are revoked, and they get no other. */
export function ungrantedSlots(
  s: Snapshot,
  memory: MemoryView,
  { taken, suspension, healthy, settled, turn }: Primaries,
): ReadonlySet<number> {
  const pausing = new Set(pausesOf(s.failovers ?? [], s.now).map(({ slot }) => slot))
  return new Set([
    ...taken.ungranted,
    ...(suspension?.ungranted ?? []),
    ...(turn === undefined ? [] : grantedElsewhere(memory, turn.successor?.uid, turn.slot.lease.slot)),
    ...healthy.flatMap(pod =>
      pod.slot !== undefined && waitsToBegin(memory.slots.get(pod.slot), pod) ? [pod.slot] : [],
    ),
    // An heir with a grant would not wait until the pause ends.
    ...settled.flatMap(({ slot }) =>
      slot !== undefined && pausing.has(slot) && msUntilReplaced(s, slot, 'Died') > 0 ? [slot] : [],
    ),
  ])
}
