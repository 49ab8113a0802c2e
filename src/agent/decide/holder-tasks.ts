import { isCloning } from '../../api/clone-of.ts'
import type { SlotLease } from '../../api/slot-lease.ts'
import { slotName } from '../../checkpoint/manifest.ts'
import { isNewerTold } from '../../slot/decide/age.ts'
import { hasNothing } from '../../slot/decide/kept.ts'
import type { Elsewhere } from '../observe/elsewhere.ts'
import { elsewhere } from '../observe/elsewhere.ts'
import type { Snapshot } from '../observe/snapshot.ts'
import type { Slot } from './slot-facts.ts'
import type { Task } from './task.ts'

/** Key of the task that fetches the generations of a slot. */
export const replicateKey = (slot: string): string => `replicate/${slot}`

/** Key of the task that copies the memory of another slot. */
export const copyKey = (slot: string): string => `copy/${slot}`

/** All copies of a node are work on one memory: together they would take its bandwidth from checkpoints. */
const copies = 'copies'

/** A slot to which no pod has been called yet, and whose memory this node is to copy from another slot. */
export function ofClone(snapshot: Snapshot, { lease, name }: Slot): Task[] {
  if (!isCloning(lease)) return []
  const from = lease.cloneOf
  if (from.node !== snapshot.node || snapshot.kept.has(name)) return []
  const { epoch, generation } = from
  return [
    {
      type: 'copyMemory',
      key: copyKey(name),
      version: `${slotName({ ...lease, ...from })} ${epoch}/${generation}`,
      memoryOf: copies,
      lease,
      from,
    },
  ]
}

export function ofHolder(snapshot: Snapshot, { lease, name }: Slot): Task[] {
  const { policy } = lease
  // How many generations to keep is not known: those that are here stay.
  if (policy === undefined) return []
  if (!lease.holders.includes(snapshot.node) || lease.node === undefined) return []
  const source = snapshot.reports.get(lease.node)
  if (source === undefined || lease.node === snapshot.node) return []
  const { address, fingerprint } = source
  const missed = missedOf(snapshot, lease)
  // A new version ends a wait at the source that would never succeed. Without `missed` the source is used again.
  const instead = missed === undefined ? '' : ` ${missed.epoch ?? ''}/${missed.generation}`
  return [
    {
      type: 'replicate',
      key: replicateKey(name),
      version: `${lease.epoch} ${address} ${fingerprint} ${policy.keep}${instead}`,
      lease,
      policy,
      source: { address, fingerprint },
      others: elsewhere(snapshot, lease).filter(other => other.address !== address),
      missed,
    },
  ]
}

/**
 * The newest generation of another node, if neither this node nor the source has it and the source makes no more. The
 * source says so in two ways. It has nothing, as after a reboot, or it reports how it could restore its copy, which no
 * node does for a primary that is on stage.
 */
function missedOf(snapshot: Snapshot, lease: SlotLease): Elsewhere | undefined {
  const source = snapshot.reports.get(lease.node ?? '')
  const said = source?.slots.find(report => slotName(report) === slotName(lease))
  if (!hasNothing(source, said) && said?.usable === undefined) return undefined
  const all = elsewhere(snapshot, lease)
  const [newest] = all
  const known = [snapshot.kept.get(slotName(lease)), all.find(({ address }) => address === source?.address)]
  return newest !== undefined && known.every(one => one === undefined || isNewerTold(newest, one))
    ? newest
    : undefined
}
