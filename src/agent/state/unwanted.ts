import type { SlotKey } from '../../api/slot-key.ts'
import { slotName } from '../../checkpoint/manifest.ts'
import type { Clock } from '../../kube/clock.ts'
import { isNamed, isWanted } from '../../slot/decide/origin.ts'
import { isKeptElsewhere } from '../observe/elsewhere.ts'
import type { Snapshot } from '../observe/snapshot.ts'

/** How long unwanted generations are kept: a Lease may be about to change again. */
const lastsMs = 60_000
/** The same for slots without a Lease, while other memory has no room: an operator replaces a Lease that it misses at once. */
const makesWayAfterMs = 10_000

/** Finds the memory on this node that no slot wants here any more. */
export interface Unwanted {
  /**
   * Slots whose memory can be removed now. If its Lease still names this node, a holder must have the memory, too. That
   * holder must have reported since the last call: an older report may be from a lost machine.
   */
  due(snapshot: Snapshot, kept: readonly SlotKey[]): readonly SlotKey[]
  /** Slots without a Lease whose memory can make way for other memory. */
  makingWay(snapshot: Snapshot, kept: readonly SlotKey[]): readonly SlotKey[]
}

export function createUnwanted(clock: Pick<Clock, 'monotonic'>): Unwanted {
  const since = new Map<string, number>()
  let writtenAt: ReadonlyMap<string, string> = new Map()
  /** Returns the slots that are unwanted, each once, and for how long they have been so. */
  const unwanted = ({ node, slots }: Snapshot, kept: readonly SlotKey[]) => {
    const leases = new Map(slots.map(lease => [slotName(lease), lease]))
    const found = new Map(
      kept.flatMap(slot => {
        const name = slotName(slot)
        const lease = leases.get(name)
        return lease !== undefined && isWanted(lease, node) ? [] : [[name, { name, slot, lease }] as const]
      }),
    )
    for (const name of [...since.keys()]) if (!found.has(name)) since.delete(name)
    return [...found.values()].map(each => {
      const at = since.get(each.name) ?? clock.monotonic()
      since.set(each.name, at)
      return { ...each, forMs: clock.monotonic() - at }
    })
  }
  return {
    due(snapshot, kept) {
      const { node, reports } = snapshot
      const heard = new Map([...reports].filter(([from, { updatedAt }]) => writtenAt.get(from) !== updatedAt))
      writtenAt = new Map([...reports].map(([from, { updatedAt }]) => [from, updatedAt]))
      return unwanted(snapshot, kept).flatMap(({ name, slot, lease, forMs }) => {
        if (forMs < lastsMs) return []
        const generation = snapshot.kept.get(name)?.generation ?? 0
        const isAsked = lease !== undefined && isNamed(lease, node)
        return isAsked && !isKeptElsewhere({ reports: heard }, lease, generation) ? [] : [slot]
      })
    },
    makingWay: (snapshot, kept) =>
      unwanted(snapshot, kept).flatMap(({ slot, lease, forMs }) =>
        lease === undefined && forMs >= makesWayAfterMs ? [slot] : [],
      ),
  }
}
