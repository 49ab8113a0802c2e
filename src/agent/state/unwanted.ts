import type { SlotKey } from '../../api/slot-key.ts'
import { slotName } from '../../checkpoint/manifest.ts'
import type { Clock } from '../../kube/clock.ts'
import { isNamed, isWanted } from '../../slot/decide/origin.ts'
import { isKeptElsewhere } from '../observe/elsewhere.ts'
import type { Snapshot } from '../observe/snapshot.ts'

/** How long unwanted generations are kept: a Lease may be about to change again. */
const lastsMs = 60_000

/** Finds the memory on this node that no slot wants here any more. */
export interface Unwanted {
  /**
   * Slots whose memory can be removed now. If its Lease still names this node, a holder must have the memory, too. That
   * holder must have reported since the last call: an older report may be from a lost machine.
   */
  due(snapshot: Snapshot, kept: readonly SlotKey[]): readonly SlotKey[]
}

export function createUnwanted(clock: Pick<Clock, 'monotonic'>): Unwanted {
  const since = new Map<string, number>()
  let writtenAt: ReadonlyMap<string, string> = new Map()
  return {
    due(snapshot, kept) {
      const { node, reports, slots } = snapshot
      const heard = new Map([...reports].filter(([from, { updatedAt }]) => writtenAt.get(from) !== updatedAt))
      writtenAt = new Map([...reports].map(([from, { updatedAt }]) => [from, updatedAt]))
      const byName = new Map(kept.map(slot => [slotName(slot), slot]))
      const leases = new Map(slots.map(lease => [slotName(lease), lease]))
      const isUnwanted = (name: string) => {
        const lease = leases.get(name)
        return lease === undefined || !isWanted(lease, node)
      }
      for (const name of [...since.keys()]) if (!byName.has(name) || !isUnwanted(name)) since.delete(name)
      return [...byName].flatMap(([name, slot]) => {
        if (!isUnwanted(name)) return []
        const at = since.get(name) ?? clock.monotonic()
        since.set(name, at)
        if (clock.monotonic() - at < lastsMs) return []
        const lease = leases.get(name)
        const generation = snapshot.kept.get(name)?.generation ?? 0
        const isAsked = lease !== undefined && isNamed(lease, node)
        return isAsked && !isKeptElsewhere({ reports: heard }, lease, generation) ? [] : [slot]
      })
    },
  }
}
