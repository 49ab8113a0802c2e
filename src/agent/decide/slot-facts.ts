import type { SlotLease } from '../../api/slot-lease.ts'
import { slotName } from '../../checkpoint/manifest.ts'
import { hasNothing, isKept, mayKeep } from '../../slot/decide/kept.ts'
import type { PodView, Snapshot } from '../observe/snapshot.ts'

/**
 * Whether another pod could continue with the memory of this slot, now or later: only then is the end of its primary a
 * death. A node that keeps the memory but cannot restore it at this moment counts, and so does a node that has not yet
 * reported its copies.
 */
export function isAtStake(snapshot: Snapshot, lease: SlotLease): boolean {
  const { reports } = snapshot
  const name = slotName(lease)
  // The operator calls no successor: the kubelet restarts the app, and a redirect would only keep it from answering.
  if (isPaused(lease)) return false
  // Other nodes can fetch generations that this node saved as the source, or kept as a holder before.
  const isOwn =
    lease.node === snapshot.node && (lease.unsaved !== true || mayKeep(lease).includes(snapshot.node))
  if (isOwn && snapshot.kept.has(name)) return true
  return lease.holders.some(node => {
    if (node === snapshot.node) return false
    const status = reports.get(node)
    const said = status?.slots.find(report => report.role === 'holder' && slotName(report) === name)
    if (said !== undefined && isKept(said)) return true
    return mayKeep(lease).includes(node) && !hasNothing(status, said)
  })
}

export const isOnStage = ({ stages, fence }: Snapshot, lease: SlotLease, pod: PodView): boolean => {
  const stage = stages.get(pod.uid)
  // An agent that starts cannot look into a fenced pod, which was on stage before.
  if (!pod.understudy || fence.fenced.has(pod.uid)) return true
  return stage?.state === 'OnStage' && stage.slot === slotName(lease)
}

/** Whether this primary is to be stopped now, and not after its grace period. */
export function isToEnd(snapshot: Snapshot, lease: SlotLease, pod: PodView): boolean {
  // The Lease says that this primary ends before its waiting successor starts; the operator weighed the risk before.
  if (lease.ending === pod.uid) return true
  // Without a place for its slot in the set, the pod ends in its grace period like any pod. With a place again it is
  // stopped at once.
  if (!pod.terminating || lease.retainedSince !== undefined) return false
  // It may run, and not have been reported yet.
  const stage = snapshot.stages.get(pod.uid)
  const isThawed = stage?.state === 'Thawed' && stage.slot === slotName(lease)
  return (isThawed || isOnStage(snapshot, lease, pod)) && isAtStake(snapshot, lease)
}

/** Whether a later look at the Lease shows the pod as the primary of the same incarnation, and not as one that is to end. */
export const isStillCalled = (uid: string, { incarnation }: SlotLease, now: SlotLease | undefined): boolean =>
  now?.holder.uid === uid && now.incarnation === incarnation && now.ending !== uid

/** Where the policy is unknown, the operator is assumed to call a successor. */
export const isPaused = ({ policy }: SlotLease): boolean => policy?.paused === true

/**
 * Redirect target that swallows connections: the kernel drops packets to loopback from any other interface. New connections of IPv6
 * are refused.
 */
export const nowhere = '127.0.0.1'

/**
 * Where connections to a primary go when it dies. They go to its heir, unless the heir has another slot by now: it
 * would answer with that slot's memory. They go nowhere if a successor has to be woken or created first: the app that
 * the kubelet restarts in the dead pod must not answer. Undefined: that app is the successor, as no other pod could
 * have the memory, or the set is paused.
 */
export function wayFrom(snapshot: Snapshot, lease: SlotLease): string | undefined {
  const { heir } = lease
  if (isPaused(lease)) return undefined
  const isTaken = heir !== undefined && snapshot.slots.some(({ holder }) => holder.uid === heir.uid)
  if (heir?.ip !== undefined && !isTaken) return heir.ip
  return isAtStake(snapshot, lease) ? nowhere : undefined
}

/**
 * Returns a container of the holder that does not have the memory of this slot. If the Lease does not name the
 * containers yet, as in a set that was paused before they ran, a restart since the life began shows it.
 */
export function anotherIn(
  snapshot: Pick<Snapshot, 'restarts'>,
  lease: SlotLease,
  { understudy, containers }: PodView,
): PodView['containers'][number] | undefined {
  const before = snapshot.restarts?.get(slotName(lease))
  // The containers of an understudy are older than the apps in them, so their restarts say nothing.
  if (lease.containers !== undefined || understudy || before === undefined)
    return containers.find(one => isAnother(lease, one))
  const restarts = containers.reduce((sum, { restarts = 0 }) => sum + restarts, 0)
  return restarts > before ? containers.find(({ restarts = 0 }) => restarts > 0) : undefined
}

/** Whether the memory of this slot belongs to another run of this container, as its Lease says. */
const isAnother = (
  { containers }: SlotLease,
  { name, containerId }: PodView['containers'][number],
): boolean =>
  containers !== undefined &&
  containerId !== undefined &&
  !containers.split(',').includes(`${name}=${containerId}`)

export interface Slot {
  readonly lease: SlotLease
  readonly name: string
}

/** Orders `web-2` before `web-10`. */
export const byNumber = (a: string, b: string): number => a.localeCompare(b, 'en', { numeric: true })
