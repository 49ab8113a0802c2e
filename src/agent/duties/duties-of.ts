import { servingReasons } from '../../api/pod-contract.ts'
import type { SlotLease } from '../../api/slot-lease.ts'
import { slotName } from '../../checkpoint/manifest.ts'
import { isNewerTold, newestTold } from '../../succession/age.ts'
import { hasNothing, isKept, mayKeep } from '../../succession/kept.ts'
import { isNamed } from '../../succession/origin.ts'
import type { Duty, DutyOf, Elsewhere } from './duty.ts'
import type { Kept, PodView, Snapshot } from './snapshot.ts'
import { unfitImages, unfitNode } from './unfit.ts'

/** Returns what this node should do now. Pure; the order means nothing. */
export function dutiesOf(snapshot: Snapshot): Duty[] {
  const pods = new Map(snapshot.pods.map(pod => [pod.uid, pod]))
  const primaries = new Set(snapshot.slots.map(({ holder }) => holder.uid))
  const slots = snapshot.slots.map(lease => ({ lease, name: slotName(lease) }))
  const duties: Duty[] = []
  for (const slot of slots) {
    const pod = pods.get(slot.lease.holder.uid)
    if (pod !== undefined) duties.push(...ofPrimary(snapshot, slot, pod))
    else duties.push(...ofHolder(snapshot, slot))
    duties.push(...ofLosers(snapshot, slot))
  }
  for (const pod of snapshot.pods) duties.push(...ofGate(pod), ...ofLeftOnStage(snapshot, pod))
  for (const pod of snapshot.pods) {
    if (primaries.has(pod.uid)) continue
    if (!isFreeUnderstudy(snapshot, pod)) {
      duties.push(...ofUnnamed(snapshot, pod))
      continue
    }
    duties.push(
      ...ofUnderstudy(
        snapshot,
        slots.filter(({ lease }) => isFor(lease, pod)),
        pod,
      ),
    )
  }
  return duties
}

interface Slot {
  readonly lease: SlotLease
  readonly name: string
}

/**
 * Whether the pod belongs to the owner of this slot. A set may have been deleted and made again under its name before the
 * garbage collector has removed its pods and Leases: the new set must not get the old set's memory.
 */
export const isFor = (
  { namespace, group, owner }: SlotLease,
  pod: Pick<PodView, 'namespace' | 'group' | 'owner'>,
): boolean =>
  pod.namespace === namespace &&
  pod.group === group &&
  (owner === undefined || pod.owner === undefined || owner === pod.owner)

/** Whether the pod is an understudy in which this node can restore memory now. */
export const isFreeUnderstudy = (snapshot: Snapshot, pod: PodView): boolean =>
  snapshot.able &&
  pod.understudy &&
  pod.kind === 'hotbackup' &&
  !pod.terminating &&
  !isDead(snapshot, pod) &&
  pod.ip !== undefined &&
  pod.containers.length > 0 &&
  pod.containers.every(isUp)

const isUp = ({ running, containerId }: PodView['containers'][number]) => running && containerId !== undefined

/**
 * Whether the memory of a slot in this pod is gone. A slot that has begun a new life in the same pod has other memory.
 *
 * @param slot name of the slot; undefined: any slot.
 */
export function isDead({ dead }: Pick<Snapshot, 'dead'>, pod: PodView, slot?: string): boolean {
  const told = dead.get(pod.uid)
  if (told !== undefined && (slot === undefined || told === slot)) return true
  if (pod.serving?.status !== 'False' || pod.serving.reason !== servingReasons.died) return false
  const died = pod.serving.record.diedWith
  return slot === undefined || died === undefined || died === slot
}

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

function ofPrimary(snapshot: Snapshot, slot: Slot, pod: PodView): Duty[] {
  const { lease, name } = slot
  const { policy } = lease
  if (isDead(snapshot, pod, name)) return ofDead(snapshot, slot, pod)
  const onStage = isOnStage(snapshot, lease, pod)
  const ids = idsOf(pod)
  const about = { pod, lease }
  if (pod.terminating || lease.ending === pod.uid) {
    if (!isToEnd(snapshot, lease, pod)) return []
    // Runs beside a dump, which may take seconds: a primary that is to end need not complete it.
    return [{ type: 'stopPrimary', key: `stopPrimary/${pod.uid}`, version: name, ...about }]
  }
  const others = elsewhere(snapshot, lease)
  if (!pod.containers.every(isUp) || pod.ip === undefined)
    return onStage || !pod.understudy
      ? []
      : [{ type: 'fetch', key: `fetch/${name}`, version: `${lease.epoch}`, lease, others }]
  if (!onStage) {
    // The set no longer has a place for its slot: the promotion is void.
    if (lease.retainedSince !== undefined) return []
    const version = `${name} ${lease.epoch} ${ids}`
    return [{ type: 'promote', key: `promote/${pod.uid}`, version, memoryOf: pod.uid, ...about, others }]
  }
  const way = wayFrom(snapshot, lease)
  const duties: Duty[] = [
    {
      type: 'watchPrimary',
      key: `watchPrimary/${pod.uid}`,
      version: `${snapshot.sentinel} ${name} ${lease.epoch} ${ids} ${way ?? ''}`,
      pod,
      lease,
      way,
    },
  ]
  if (pod.understudy || policy?.liveness !== undefined)
    duties.push({
      type: 'probe',
      key: `probe/${pod.uid}`,
      version: `${name} ${lease.epoch} ${ids}`,
      ...about,
    })
  const isKeptElsewhere = lease.unsaved !== true && lease.holders.some(node => node !== snapshot.node)
  // How often to save, and how much, is not known.
  if (policy === undefined) return duties
  // A stopped primary fails its probes; that is no reason to resume it.
  if (snapshot.able && isKeptElsewhere && lease.handover !== undefined && !snapshot.handoversPaused.has(name))
    return [
      ...duties,
      {
        type: 'handOver',
        key: `handOver/${pod.uid}`,
        version: `${name} ${lease.epoch} ${ids} ${lease.handover} ${lease.handovers ?? ''}`,
        memoryOf: pod.uid,
        ...{ ...about, policy },
      },
    ]
  // The version contains neither the pace nor the readiness: their change must not abort a dump in progress. A
  // container that replaced the one with the slot's memory is not saved: its generation would count as a continuation.
  if (snapshot.able && isKeptElsewhere && anotherIn(snapshot, lease, pod) === undefined)
    duties.push({
      type: 'checkpoint',
      key: `checkpoint/${pod.uid}`,
      version: `${name} ${lease.epoch} ${ids}`,
      memoryOf: pod.uid,
      ...{ ...about, policy },
    })
  return duties
}

/**
 * A promoted understudy has no probes of its own in its spec, so the agent probes it even if its set keeps no memory
 * any more: then its slot has no Lease. Such a pod may stay for long, where pods are replaced only when they are deleted.
 */
function ofLeftOnStage({ slots, dead }: Snapshot, pod: PodView): Duty[] {
  if (!pod.understudy) return []
  if (slots.some(lease => lease.holder.uid === pod.uid || (isFor(lease, pod) && lease.name === pod.slot)))
    return []
  if (pod.kind !== 'primary' || pod.terminating || isDead({ dead }, pod)) return []
  if (!pod.containers.every(isUp) || pod.ip === undefined) return []
  if (!saysOnStage(pod) && pod.serving?.reason !== servingReasons.notAnswering) return []
  return [{ type: 'probe', key: `probe/${pod.uid}`, version: `without memory ${idsOf(pod)}`, pod }]
}

/** True if the running containers are the ones that were put on stage, as far as the condition says. */
export const saysOnStage = ({ serving, containers }: PodView): boolean =>
  serving?.status === 'True' &&
  containers.every(
    ({ name, containerId }) => containerId !== undefined && serving.record.containers?.[name] === containerId,
  )

const isOnStage = ({ stages }: Snapshot, lease: SlotLease, pod: PodView): boolean => {
  const stage = stages.get(pod.uid)
  return !pod.understudy || (stage?.state === 'OnStage' && stage.slot === slotName(lease))
}

/** Whether this primary is to be stopped now, and not after its grace period. */
export function isToEnd(snapshot: Snapshot, lease: SlotLease, pod: PodView): boolean {
  // The Lease says that this primary ends before its waiting successor starts; the operator weighed the risk before.
  if (lease.ending === pod.uid) return true
  // Without a place for its slot in the set, the pod ends in its grace period like any pod. With a place again it is
  // stopped at once.
  if (!pod.terminating || lease.retainedSince !== undefined) return false
  return isOnStage(snapshot, lease, pod) && isAtStake(snapshot, lease)
}

/** Where the policy is unknown, the operator is assumed to call a successor. */
const isPaused = ({ policy }: SlotLease): boolean => policy?.paused === true

/** Duties for a dead primary without a successor. Its heir may have got another slot since, or be gone. */
function ofDead(snapshot: Snapshot, { lease, name }: Slot, pod: PodView): Duty[] {
  if (isPaused(lease)) return []
  const to = wayFrom(snapshot, lease) ?? nowhere
  const version = `${name} ${snapshot.sentinel} ${idsOf(pod)} ${to}`
  return [{ type: 'redirect', key: `redirect/${pod.uid}`, version, pod, lease, to, isAwaited: true }]
}

/** Redirect target that swallows connections: the kernel drops packets to loopback from any other interface. */
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

/** The newest generations that other nodes named by the slot's Lease report, the newest first. */
function elsewhere({ reports }: Snapshot, lease: SlotLease): Elsewhere[] {
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

/** Whether another holder of the slot reports this generation, or a newer one. */
export function isKeptElsewhere(
  { reports }: Pick<Snapshot, 'reports'>,
  lease: SlotLease,
  generation: number,
): boolean {
  const name = slotName(lease)
  return lease.holders.some(node =>
    reports.get(node)?.slots.some(
      ({ role, epoch = lease.epoch, ...report }) =>
        // A generation of an earlier epoch is other memory, whatever its number.
        role === 'holder' &&
        epoch === lease.epoch &&
        report.generation >= generation &&
        slotName(report) === name,
    ),
  )
}

/** Watches a gate, and opens it if the operator asks: the operator could not reach the gate itself. */
function ofGate(pod: PodView): Duty[] {
  if (!pod.understudy || pod.terminating || pod.gate === undefined) return []
  const { containerId, order } = pod.gate
  const attend: Duty = { type: 'watchGate', key: `watchGate/${pod.uid}`, version: containerId, pod }
  return order === undefined
    ? [attend]
    : [attend, { type: 'wake', key: `wake/${pod.uid}`, version: `${containerId} ${order}`, pod }]
}

/** Former primaries that still run although the slot is another pod's: two pods must not answer with one memory. */
function ofLosers(snapshot: Snapshot, { lease, name }: Slot): Duty[] {
  const losers = snapshot.pods.filter(
    pod =>
      isFor(lease, pod) &&
      pod.slot === lease.name &&
      pod.uid !== lease.holder.uid &&
      (pod.kind === 'primary' || pod.kind === 'retired') &&
      pod.epoch < lease.epoch,
  )
  return losers.flatMap((pod): Duty[] => {
    const to = lease.ip ?? nowhere
    const version = `${name} ${snapshot.sentinel} ${idsOf(pod)} ${to}`
    if (isDead(snapshot, pod))
      return [{ type: 'redirect', key: `redirect/${pod.uid}`, version, pod, lease, to, isAwaited: false }]
    return [{ type: 'stopPrimary', key: `stopPrimary/${pod.uid}`, version: name, pod, lease }]
  })
}

/**
 * Whether the pod serves. The readiness of an understudy on stage follows its condition `serving`, up to a second late.
 */
export const isServing = (pod: PodView): boolean =>
  pod.understudy ? pod.serving?.status === 'True' : pod.ready

/** Key of the task that fetches the generations of a slot. */
export const replicateKey = (slot: string): string => `replicate/${slot}`

function ofHolder(snapshot: Snapshot, { lease, name }: Slot): Duty[] {
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

/**
 * Clears an understudy that no Lease names and in which memory cannot be restored now. It may have been promoted
 * before, and its agent may have died between the thaw and the report. Then two pods would run with one memory,
 * whatever the pod's label says by now, whether it ends, and whatever else this node can do.
 */
function ofUnnamed(snapshot: Snapshot, pod: PodView): Duty[] {
  if (!pod.understudy || (pod.kind !== 'hotbackup' && pod.kind !== 'coldbackup')) return []
  if (isDead(snapshot, pod) || pod.containers.length === 0 || !pod.containers.every(isUp)) return []
  // A preStop hook over HTTP would wait for a frozen app, because its kernel still accepts connections.
  return [clear(pod, pod.terminating)]
}

const clear = (pod: PodView, frozenToo: boolean): DutyOf<'discard'> => ({
  type: 'discard',
  key: `discard/${pod.uid}`,
  version: `${idsOf(pod)} ${frozenToo}`,
  memoryOf: pod.uid,
  pod,
  frozenToo,
})

function ofUnderstudy(snapshot: Snapshot, slots: readonly Slot[], pod: PodView): Duty[] {
  const ids = idsOf(pod)
  const present = snapshot.stages.get(pod.uid)
  // Its clone may be of use again as soon as the policy is known.
  const unknown = slots.filter(({ lease }) => lease.policy === undefined)
  if (unknown.some(({ name }) => name === present?.slot)) return [clear(pod, false)]
  const restorable = slots.flatMap(slot => {
    const kept = snapshot.kept.get(slot.name)
    if (kept === undefined || slot.lease.policy === undefined || kept.restoreHash !== pod.restoreHash)
      return []
    if (unfitNode(snapshot, kept) !== undefined || unfitImages(pod, kept) !== undefined) return []
    return [{ ...slot, kept }]
  })
  const own = restorable.filter(
    ({ lease, kept }) => lease.heir?.uid === pod.uid && lease.policy?.mode === 'Frozen' && fits(pod, kept),
  )
  // Memory that is already there goes first: all slots are equal, and a change costs a restore. A primary that is
  // stopped for this very pod comes before all.
  const awaited = own.find(({ lease }) => lease.handover === pod.uid)
  const chosen = awaited ?? own.find(({ name }) => name === present?.slot) ?? bySlot(own)[0]
  if (chosen !== undefined)
    return [
      {
        type: 'freeze',
        key: `freeze/${pod.uid}`,
        version: `${chosen.name} ${ids}`,
        memoryOf: pod.uid,
        pod,
        lease: chosen.lease,
      },
    ]
  const unproven = bySlot(restorable).find(({ kept }) => !snapshot.proven.has(kept.restoreHash))
  // An agent that starts has not yet looked at what lies in it.
  if (unproven === undefined) return [clear(pod, present !== undefined || unknown.length === 0)]
  return [
    {
      type: 'verifyRestore',
      key: `verifyRestore/${pod.uid}`,
      version: `${unproven.name} ${unproven.kept.restoreHash} ${ids}`,
      memoryOf: pod.uid,
      pod,
      lease: unproven.lease,
    },
  ]
}

const bySlot = <T extends Slot>(slots: readonly T[]): T[] =>
  [...slots].sort((a, b) => byNumber(a.lease.name, b.lease.name))

/** Orders `web-2` before `web-10`. */
export const byNumber = (a: string, b: string): number => a.localeCompare(b, 'en', { numeric: true })

/** A frozen tree counts against the understudy's memory limits in full, and the app needs some room on top. */
export const fits = (pod: PodView, { memory }: Pick<Kept, 'memory'>): boolean =>
  pod.containers.every(
    ({ name, memoryLimit }) => memoryLimit === undefined || (memory.get(name) ?? 0) * 1.1 <= memoryLimit,
  )

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

/** Names and ids of the pod's containers. */
export const idsOf = (pod: PodView): string =>
  pod.containers.map(({ name, containerId }) => `${name}=${containerId ?? ''}`).join(',')
