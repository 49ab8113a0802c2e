import type { SlotKey } from '../../api/slot-lease.ts'
import { slotName } from '../../checkpoint/manifest.ts'
import type { Clock } from '../../kube/clock.ts'
import { isNamed, isWanted } from '../../succession/origin.ts'
import { isKeptElsewhere } from './duties-of.ts'
import type { Snapshot } from './snapshot.ts'

/** How long generations are kept that nobody wants here: a Lease may be on its way to another state. */
const lastsMs = 60_000

/** Which memory that is kept on this node no slot wants here any more. */
export interface Unwanted {
  /**
   * Slots whose memory can be thrown away now. Where its Lease still asks this node for it, not before a holder has it, too,
   * that has written since this was last asked: what another one says may be true of a machine that is lost.
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
