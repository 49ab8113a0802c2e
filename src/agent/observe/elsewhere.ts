import type { SlotReport } from '../../api/node-report.ts'
import type { SlotLease } from '../../api/slot-lease.ts'
import { slotName } from '../../checkpoint/manifest.ts'
import type { Told } from '../../slot/decide/age.ts'
import { newestTold } from '../../slot/decide/age.ts'
import { isNamed } from '../../slot/decide/origin.ts'
import type { Snapshot } from './snapshot.ts'

/** The newest generations that other nodes named by the slot's Lease report, the newest first. */
export function elsewhere({ reports }: Snapshot, lease: SlotLease): Elsewhere[] {
  const name = slotName(lease)
  return [...reports]
    .filter(([node]) => isNamed(lease, node))
    .flatMap(([, { address, fingerprint, slots }]) =>
      slots
        .filter(report => report.generation > 0 && slotName(report) === name)
        .map(({ epoch, generation, takenAt = '' }) => ({
          ...{ address, fingerprint, generation, takenAt: Date.parse(takenAt) || 0 },
          ...(epoch !== undefined && { epoch }),
        })),
    )
    .sort((a, b) => newestTold(a, b) || (a.address < b.address ? -1 : 1))
}

/** Returns what this holder reports about the slot. A generation of an earlier epoch is other memory, whatever its number. */
function saidBy(
  { reports }: Pick<Snapshot, 'reports'>,
  node: string,
  lease: SlotLease,
): SlotReport | undefined {
  const name = slotName(lease)
  return reports
    .get(node)
    ?.slots.find(
      ({ role, epoch = lease.epoch, ...report }) =>
        role === 'holder' && epoch === lease.epoch && slotName(report) === name,
    )
}

/** Whether another holder of the slot reports this generation, or a newer one. */
export const isKeptElsewhere = (
  snapshot: Pick<Snapshot, 'reports'>,
  lease: SlotLease,
  generation: number,
): boolean =>
  lease.holders.some(node => (saidBy(snapshot, node, lease)?.generation ?? Number.NaN) >= generation)

/**
 * Returns the generation with which the successor of a handover could continue, as its node reports; undefined: with none, or it has
 * not reported yet.
 */
export const successorGeneration = (
  snapshot: Pick<Snapshot, 'reports'>,
  lease: SlotLease,
): number | undefined =>
  lease.holders
    .map(node => saidBy(snapshot, node, lease)?.successorGeneration)
    .find(said => said !== undefined)

/** Memory that is to be frozen will be, unless there is a reason. */
const isStandby = ({ usable, reason }: SlotReport, { policy }: SlotLease): boolean =>
  usable === 'Frozen' || (usable === 'Staged' && (policy?.mode === 'Staged' || reason !== undefined))

/**
 * Returns the newest generation on a node where an understudy could take the slot at once, as that node reports; undefined: there is
 * none. An earlier one may be frozen there.
 */
export function standbyGeneration(
  snapshot: Pick<Snapshot, 'reports' | 'slots'>,
  lease: SlotLease,
): number | undefined {
  // The nodes of its understudies may have become holders since.
  const now = snapshot.slots.find(each => slotName(each) === slotName(lease)) ?? lease
  const generations = now.holders.flatMap(node => {
    const said = saidBy(snapshot, node, now)
    return said !== undefined && isStandby(said, now) ? [said.generation] : []
  })
  return generations.length === 0 ? undefined : Math.max(...generations)
}

/** Address of an agent, and the fingerprint of its key. */
export interface Peer {
  readonly address: string
  readonly fingerprint: string
}

/** The memory of a slot on another node, as that node's report says. */
export interface Elsewhere extends Peer, Told {}
