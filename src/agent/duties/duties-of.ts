import type { SlotLease } from '../../api/slot-lease.ts'
import { servingReasons } from '../../api/stage.ts'
import { slotName } from '../../checkpoint/manifest.ts'
import { isNewerTold, newestTold } from '../../succession/age.ts'
import { hasNothing, isKept, mayKeep } from '../../succession/kept.ts'
import { isNamed } from '../../succession/origin.ts'
import { slotOfDeath } from './deaths.ts'
import type { Duty, DutyOf, Elsewhere } from './duty.ts'
import { unfitImages, unfitNode } from './placement.ts'
import { restoreHashOf } from './settings.ts'
import type { Kept, MemorySettings, PodView, Snapshot } from './snapshot.ts'

/** What this node should be doing now. Pure; its order means nothing. */
export function dutiesOf(snapshot: Snapshot): Duty[] {
  const pods = new Map(snapshot.pods.map(pod => [pod.uid, pod]))
  const primaries = new Set(snapshot.slots.map(({ holder }) => holder.uid))
  const slots = snapshot.slots.flatMap(lease => {
    const settings = snapshot.settings.get(setOf(lease))
    return settings === undefined ? [] : [{ lease, settings, name: slotName(lease) }]
  })
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
        slots.filter(({ lease }) => setOf(lease) === pod.set),
        pod,
      ),
    )
  }
  return duties
}

interface Slot {
  readonly lease: SlotLease
  readonly settings: MemorySettings
  readonly name: string
}

const setOf = ({ namespace, set }: SlotLease) => `${namespace}/${set}`

/** An understudy in which nothing keeps this node from bringing memory back. */
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
 * Whether what this pod had of a slot is gone. A slot that has begun a new life in the same pod has other memory.
 *
 * @param slot its name; undefined: of any.
 */
export function isDead({ dead }: Pick<Snapshot, 'dead'>, pod: PodView, slot?: string): boolean {
  const told = dead.get(pod.uid)
  if (told !== undefined && (slot === undefined || told === slot)) return true
  if (pod.serving?.status !== 'False' || pod.serving.reason !== servingReasons.died) return false
  const died = slotOfDeath(pod.serving.message)
  return slot === undefined || died === undefined || died === slot
}

/**
 * Whether somebody else could go on with the memory of this slot, now or later: what makes the end of its primary a death.
 * A node that keeps it and cannot bring it back at this moment, and one that has not said yet what it keeps, count.
 */
export function isAtStake(snapshot: Snapshot, lease: SlotLease): boolean {
  const { reports } = snapshot
  const name = slotName(lease)
  // Nobody would call a successor: the kubelet starts the app again, and a grave would only keep it from answering.
  if (isPaused(snapshot, lease)) return false
  // What was saved here, or was held here before, can be fetched from here.
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
  const { lease, settings, name } = slot
  if (isDead(snapshot, pod, name)) return ofDead(snapshot, slot, pod)
  const onStage = isOnStage(snapshot, lease, pod)
  const ids = idsOf(pod)
  const about = { pod, lease, settings }
  if (pod.terminating || lease.ending === pod.uid) {
    if (!isToEnd(snapshot, lease, pod)) return []
    // Beside a dump, which may take seconds: what is to end need not be let finish it.
    return [{ type: 'bury', key: `bury/${pod.uid}`, version: name, ...about }]
  }
  const others = elsewhere(snapshot, lease)
  if (!pod.containers.every(isUp) || pod.ip === undefined)
    return onStage || !pod.understudy
      ? []
      : [{ type: 'fetch', key: `fetch/${name}`, version: `${lease.epoch}`, lease, others }]
  if (!onStage) {
    // The set has no place for its slot any more: it was called in vain.
    if (lease.retainedSince !== undefined) return []
    const version = `${name} ${lease.epoch} ${ids}`
    return [{ type: 'promote', key: `promote/${pod.uid}`, version, memoryOf: pod.uid, ...about, others }]
  }
  const way = wayFrom(snapshot, lease)
  const duties: Duty[] = [
    {
      type: 'guard',
      key: `guard/${pod.uid}`,
      version: `${snapshot.sentinel} ${name} ${lease.epoch} ${ids} ${way ?? ''}`,
      pod,
      lease,
      way,
    },
  ]
  if (pod.understudy || settings.liveness !== undefined)
    duties.push({
      type: 'probe',
      key: `probe/${pod.uid}`,
      version: `${name} ${lease.epoch} ${ids}`,
      ...about,
    })
  const isKeptElsewhere = lease.unsaved !== true && lease.holders.some(node => node !== snapshot.node)
  // One that stands still answers nobody and is not ready: that is no reason to let it go on.
  if (snapshot.able && isKeptElsewhere && lease.handover !== undefined && !snapshot.handoversPaused.has(name))
    return [
      ...duties,
      {
        type: 'handOver',
        key: `handOver/${pod.uid}`,
        version: `${name} ${lease.epoch} ${ids} ${lease.handover} ${lease.handovers ?? ''}`,
        memoryOf: pod.uid,
        ...about,
      },
    ]
  // Neither its pace nor whether it serves at the moment: a dump that has begun must not be broken off for these.
  // Nor what runs in the place of what the slot's memory is of: saved, it would follow that memory as if it were it.
  if (snapshot.able && isKeptElsewhere && anotherIn(snapshot, lease, pod) === undefined)
    duties.push({
      type: 'checkpoint',
      key: `checkpoint/${pod.uid}`,
      version: `${name} ${lease.epoch} ${ids}`,
      memoryOf: pod.uid,
      ...about,
    })
  return duties
}

/**
 * A promoted understudy has given its probes away, and keeps none of its own when its set keeps no memory any more. It may
 * stay for long, where pods are replaced only when they are deleted.
 */
function ofLeftOnStage({ memoryless, dead }: Snapshot, pod: PodView): Duty[] {
  if (!memoryless.has(pod.set) || !pod.understudy || pod.apps === undefined) return []
  if (pod.kind !== 'primary' || pod.terminating || isDead({ dead }, pod)) return []
  if (!pod.containers.every(isUp) || pod.ip === undefined) return []
  const { serving } = pod
  // What runs there now is what was brought on stage, as far as anybody has said.
  const isOn = serving?.status === 'True' && pod.containers.every(one => isNamedIn(serving.message, one))
  if (!isOn && serving?.reason !== servingReasons.notAnswering) return []
  return [{ type: 'probe', key: `probe/${pod.uid}`, version: `without memory ${idsOf(pod)}`, pod }]
}

const isNamedIn = (message: string, { containerId }: PodView['containers'][number]): boolean =>
  containerId !== undefined && message.includes(containerId)

const isOnStage = ({ stages }: Snapshot, lease: SlotLease, pod: PodView): boolean => {
  const stage = stages.get(pod.uid)
  return !pod.understudy || (stage?.state === 'OnStage' && stage.slot === slotName(lease))
}

/** Whether this primary is to be ended now, and not in its grace. */
export function isToEnd(snapshot: Snapshot, lease: SlotLease, pod: PodView): boolean {
  // Who is to be ended for a successor that waits for it is told so by its Lease: what is at stake was weighed there.
  if (lease.ending === pod.uid) return true
  // The set has no place for its slot: it ends in its grace like any pod. With a place again it is ended at once.
  if (!pod.terminating || lease.retainedSince !== undefined) return false
  return isOnStage(snapshot, lease, pod) && isAtStake(snapshot, lease)
}

const isPaused = ({ settings }: Snapshot, lease: SlotLease): boolean =>
  settings.get(setOf(lease))?.paused === true

/** A dead one that nobody has followed yet. Its heir may have got another slot since, or be gone. */
function ofDead(snapshot: Snapshot, { lease, settings, name }: Slot, pod: PodView): Duty[] {
  if (settings.paused) return []
  const to = wayFrom(snapshot, lease) ?? nowhere
  const version = `${name} ${snapshot.sentinel} ${idsOf(pod)} ${to}`
  return [{ type: 'redirect', key: `redirect/${pod.uid}`, version, pod, lease, to, isAwaited: true }]
}

/** Swallows connections: to itself by an interface from which none may come, and the kernel drops them. */
export const nowhere = '127.0.0.1'

/**
 * Where connections to a primary go when it dies. To its heir, unless that has another slot by now: its memory would
 * answer for this one's. To nobody where a successor has to be woken or made first: what the kubelet starts in the dead
 * one's place must not answer. Undefined: nobody else has its memory, and what the kubelet starts is its successor.
 */
export function wayFrom(snapshot: Snapshot, lease: SlotLease): string | undefined {
  const { heir } = lease
  if (isPaused(snapshot, lease)) return undefined
  const isTaken = heir !== undefined && snapshot.slots.some(({ holder }) => holder.uid === heir.uid)
  if (heir?.ip !== undefined && !isTaken) return heir.ip
  return isAtStake(snapshot, lease) ? nowhere : undefined
}

/** What the nodes that the slot's Lease names have of it, the newest first. */
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

/** Whether another holder of the slot says that it has this generation of it, or a newer one. */
export function isKeptElsewhere(
  { reports }: Pick<Snapshot, 'reports'>,
  lease: SlotLease,
  generation: number,
): boolean {
  const name = slotName(lease)
  return lease.holders.some(node =>
    reports.get(node)?.slots.some(
      ({ role, epoch = lease.epoch, ...report }) =>
        // Of an epoch before it has another memory, whatever its number.
        role === 'holder' &&
        epoch === lease.epoch &&
        report.generation >= generation &&
        slotName(report) === name,
    ),
  )
}

/** The operator could not reach the gate, and asks its node to. */
function ofGate(pod: PodView): Duty[] {
  if (!pod.understudy || pod.terminating || pod.gate === undefined) return []
  const { containerId, order } = pod.gate
  const attend: Duty = { type: 'attend', key: `attend/${pod.uid}`, version: containerId, pod }
  return order === undefined
    ? [attend]
    : [attend, { type: 'wake', key: `wake/${pod.uid}`, version: `${containerId} ${order}`, pod }]
}

/** Who held the slot until somebody else was called, and runs on: two must not answer with one memory. */
function ofLosers(snapshot: Snapshot, { lease, settings, name }: Slot): Duty[] {
  const losers = snapshot.pods.filter(
    pod =>
      pod.set === setOf(lease) &&
      pod.slot === lease.slot &&
      pod.uid !== lease.holder.uid &&
      (pod.kind === 'primary' || pod.kind === 'retired') &&
      pod.epoch < lease.epoch,
  )
  return losers.flatMap((pod): Duty[] => {
    const to = lease.ip ?? nowhere
    const version = `${name} ${snapshot.sentinel} ${idsOf(pod)} ${to}`
    if (isDead(snapshot, pod))
      return [{ type: 'redirect', key: `redirect/${pod.uid}`, version, pod, lease, to, isAwaited: false }]
    return [{ type: 'bury', key: `bury/${pod.uid}`, version: name, pod, lease, settings }]
  })
}

/** Readiness of an understudy on stage follows its condition `serving`, up to a second late. */
export const isServing = (pod: PodView): boolean =>
  pod.understudy ? pod.serving?.status === 'True' : pod.ready

function ofHolder(snapshot: Snapshot, { lease, settings, name }: Slot): Duty[] {
  if (!lease.holders.includes(snapshot.node) || lease.node === undefined) return []
  const source = snapshot.reports.get(lease.node)
  if (source === undefined || lease.node === snapshot.node) return []
  const { address, fingerprint } = source
  const missed = missedOf(snapshot, lease)
  // Who waits at the source would wait in vain, and one that is not missed any more comes from there again.
  const instead = missed === undefined ? '' : ` ${missed.epoch ?? ''}/${missed.generation}`
  return [
    {
      type: 'hold',
      key: `hold/${name}`,
      version: `${lease.epoch} ${address} ${fingerprint} ${settings.keep}${instead}`,
      lease,
      settings,
      source: { address, fingerprint },
      others: elsewhere(snapshot, lease).filter(other => other.address !== address),
      missed,
    },
  ]
}

/**
 * The newest that another node has, where neither we nor the source have it, and the source says that no more is made there:
 * it has nothing, as after a reboot, or could bring back what it has, which nobody says of a primary that is on stage.
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
 * An understudy that nothing can be brought back in, and that no Lease names. It may have been called before, and its agent
 * may have died between the thaw and the word of it: two would run with one memory, whatever the pod's label says by now,
 * whether it ends, and whatever else this node can do.
 */
function ofUnnamed(snapshot: Snapshot, pod: PodView): Duty[] {
  if (!pod.understudy || (pod.kind !== 'hotbackup' && pod.kind !== 'coldbackup')) return []
  if (isDead(snapshot, pod) || pod.containers.length === 0 || !pod.containers.every(isUp)) return []
  // A preStop over HTTP would wait for an app that is frozen, as its kernel takes connections for it.
  return [clear(pod, pod.terminating)]
}

const clear = (pod: PodView, frozenToo: boolean): DutyOf<'clear'> => ({
  type: 'clear',
  key: `clear/${pod.uid}`,
  version: `${idsOf(pod)} ${frozenToo}`,
  memoryOf: pod.uid,
  pod,
  frozenToo,
})

function ofUnderstudy(snapshot: Snapshot, slots: readonly Slot[], pod: PodView): Duty[] {
  const ids = idsOf(pod)
  const restorable = slots.flatMap(slot => {
    const kept = snapshot.kept.get(slot.name)
    if (kept === undefined || kept.restoreHash !== restoreHashOf(pod, slot.settings)) return []
    if (unfitNode(snapshot, kept) !== undefined || unfitImages(pod, kept) !== undefined) return []
    return [{ ...slot, kept }]
  })
  const own = restorable.filter(
    ({ lease, settings, kept }) =>
      lease.heir?.uid === pod.uid && settings.mode === 'Frozen' && fits(pod, kept),
  )
  const present = snapshot.stages.get(pod.uid)
  // What lies there already goes first: one of several slots is as good as another, and a change costs a restore.
  // But a primary that stands still for this very pod comes before all.
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
        settings: chosen.settings,
      },
    ]
  const unproven = bySlot(restorable).find(({ kept }) => !snapshot.proven.has(kept.restoreHash))
  if (unproven === undefined) return [clear(pod, true)]
  return [
    {
      type: 'trial',
      key: `trial/${pod.uid}`,
      version: `${unproven.name} ${unproven.kept.restoreHash} ${ids}`,
      memoryOf: pod.uid,
      pod,
      lease: unproven.lease,
      settings: unproven.settings,
    },
  ]
}

const bySlot = <T extends Slot>(slots: readonly T[]): T[] =>
  [...slots].sort((a, b) => a.lease.slot - b.lease.slot)

/** A frozen tree counts against the understudy's limits in full; what the app will do with it needs some room, too. */
export const fits = (pod: PodView, { memory }: Pick<Kept, 'memory'>): boolean =>
  pod.containers.every(
    ({ name, memoryLimit }) => memoryLimit === undefined || (memory.get(name) ?? 0) * 1.1 <= memoryLimit,
  )

/**
 * A container of the holder that is not what the memory of this slot is of. Where the Lease does not name its containers
 * yet, as in a set that was paused before they ran, a restart since the life began says it.
 */
export function anotherIn(
  snapshot: Pick<Snapshot, 'restarts'>,
  lease: SlotLease,
  { understudy, containers }: PodView,
): PodView['containers'][number] | undefined {
  const before = snapshot.restarts?.get(slotName(lease))
  // The containers of an understudy are older than what runs in them.
  if (lease.containers !== undefined || understudy || before === undefined)
    return containers.find(one => isAnother(lease, one))
  const restarts = containers.reduce((sum, { restarts = 0 }) => sum + restarts, 0)
  return restarts > before ? containers.find(({ restarts = 0 }) => restarts > 0) : undefined
}

/** Whether the memory of this slot is that of another life of this container, as its Lease says. */
const isAnother = (
  { containers }: SlotLease,
  { name, containerId }: PodView['containers'][number],
): boolean =>
  containers !== undefined &&
  containerId !== undefined &&
  !containers.split(',').includes(`${name}=${containerId}`)

/** The lives of its containers. */
export const idsOf = (pod: PodView): string =>
  pod.containers.map(({ name, containerId }) => `${name}=${containerId ?? ''}`).join(',')
