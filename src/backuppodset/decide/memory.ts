import type { Random } from '../../kube/random.ts'
import { fitsMemory } from '../../succession/kinds.ts'
import { match, type Option } from '../../succession/match.ts'
import { madeAt, takenAt } from '../memory/age.ts'
import type { MemoryView, SlotMemory } from '../memory/view.ts'
import type { Action, Origin, Role, Stage } from '../plan.ts'
import type { LossReason, LostPrimary, PodView, Snapshot } from '../snapshot.ts'
import { assignments } from './assignments.ts'
import { together } from './converge.ts'
import { failureOf } from './failing.ts'
import { refill } from './refill.ts'
import type { Policies } from './select.ts'
import { type Cast, castOf, roleGiver, roleIn } from './slots.ts'
import { goes, remove, rewakes, toolsOf } from './tools.ts'

/**
 * Algorithm 1 for sets that keep memory. A slot that lost its primary goes to a hot backup on whose node its memory
 * is usable; a backup without it is no successor, since nothing runs in it. Where no memory is left the slot begins
 * anew: in place if the kubelet restarts the container, else in a new pod.
 */
export function convergeWithMemory(
  s: Snapshot,
  memory: MemoryView,
  random: Random,
  policies: Policies,
): Stage[] {
  const { strategy, replicas } = s.set
  const tools = toolsOf(s, random, policies)
  const cast = castByLease(s, memory)
  const [backups, unfit] = partition(
    s.pods.filter(pod => pod.kind !== 'primary'),
    // A dead one comes back as little as one that was made before the set asked for memory: that runs the app, or would.
    pod => pod.stage?.keeps === true && pod.stage.understudy && !pod.stage.died,
  )
  const fit = backups.filter(pod => pod.kind === 'hotbackup')
  const cold = backups.filter(pod => pod.kind === 'coldbackup')

  // Which slots want a successor: those of primaries that failed, and those whose primary is gone.
  const over = Math.max(0, cast.primaries.length - replicas)
  const failing = over > 0 ? [] : failures(s, memory, cast)
  const { waiting, open, needless } = vacancies(s, memory, cast, fit)
  const candidates = fit.filter(pod => pod.ready && !pod.waking && pod.stage?.failed === undefined)
  const wishes = new Map(
    [...failing.map(({ pod }) => pod.slot ?? -1), ...open.map(({ lease }) => lease.slot)].map(slot => [
      slot,
      optionsOf(memory.slots.get(slot), candidates),
    ]),
  )
  const taken = match(wishes)
  const successorOf = (slot: number | undefined) =>
    candidates.find(pod => slot !== undefined && pod.uid === taken.get(slot))

  const primaryActions: Action[] = []
  const replaced = new Set<PodView>()
  const vacant: Role[] = []
  for (const { pod, reason } of failing) {
    const slot = memory.slots.get(pod.slot ?? -1)
    const successor = successorOf(pod.slot)
    if (pod.slot === undefined) continue
    const role = roleIn(s, pod.slot, lostPrimary(s, pod, pod.slot, reason))
    if (slot !== undefined && successor !== undefined) {
      primaryActions.push(promotion(slot, successor, role, s))
      replaced.add(pod)
    } else if (reason === 'Died') {
      // Whoever declared it dead has shut it off, and an understudy comes to life by a restore only: it does not come back.
      vacant.push({ ...role, startsEmpty: true })
      replaced.add(pod)
    }
  }
  for (const slot of open) {
    const successor = successorOf(slot.lease.slot)
    const role = roleIn(s, slot.lease.slot, s.lost.get(slot.lease.slot) ?? lostHolder(s, slot))
    if (successor !== undefined) primaryActions.push(promotion(slot, successor, role, s))
    else vacant.push({ ...role, startsEmpty: true })
  }
  // Unfinished promotions: the Lease has been won, by us or by whoever led before.
  for (const pod of cast.primaries) {
    const slot = memory.slots.get(pod.slot ?? -1)
    if (pod.stage?.summoned && !pod.waking && slot !== undefined) {
      const { lease } = slot
      const role = { slot: lease.slot, epoch: lease.epoch, replaces: s.lost.get(lease.slot) }
      primaryActions.push({
        type: 'promote',
        pod,
        role,
        lease,
        version: undefined,
        origin: originOn(slot, pod, s),
      })
    }
  }

  const healthy = cast.primaries.filter(pod => !replaced.has(pod))
  const slotless = cast.slotless.filter(pod => healthy.includes(pod))
  const surplusPrimaries = tools.surplus(healthy, over, strategy.replicasToUnallocated)
  const nextRole = roleGiver(
    s,
    [
      ...memory.slots.keys(),
      ...cast.primaries.flatMap(pod => (pod.slot === undefined || slotless.includes(pod) ? [] : [pod.slot])),
    ],
    [],
  )
  for (const pod of slotless)
    if (!pod.waking && !goes(surplusPrimaries, pod))
      primaryActions.push({ type: 'convert', pod, to: 'primary', role: nextRole(), wake: false })
  primaryActions.push(...surplusPrimaries)
  const filled = cast.primaries.length + waiting.length + open.length
  for (let fresh = replicas - filled; fresh > 0; fresh -= 1) vacant.push(nextRole())
  // Only a new pod runs the app by itself: backups hold the stage for memory, cold ones too once they are woken.
  for (const role of vacant)
    primaryActions.push(tools.creating('primary', strategy.unallocatedToReplicas, () => role))
  primaryActions.push(
    ...rewakes(healthy.filter(pod => !slotless.includes(pod) && !goes(surplusPrimaries, pod))),
  )

  const converted = new Set(primaryActions.flatMap(action => ('pod' in action ? [action.pod.uid] : [])))
  const left = (pods: readonly PodView[]) => pods.filter(pod => !converted.has(pod.uid))
  const stages: Stage[] = [
    { tier: 'primaries', actions: primaryActions },
    {
      tier: 'assignments',
      aside: true,
      actions: [
        ...assignments(s, memory, random, {
          primaries: healthy.filter(pod => !slotless.includes(pod) && !goes(surplusPrimaries, pod)),
          understudies: left(fit),
          emptied: new Set(
            healthy.flatMap(pod =>
              pod.slot !== undefined && beganAnew(s, memory, pod, candidates) ? [pod.slot] : [],
            ),
          ),
        }),
        ...needless.map(({ lease, uid, resourceVersion }): Action => {
          return { type: 'forget', slot: lease.slot, lease: { uid, resourceVersion } }
        }),
      ],
    },
    {
      tier: 'claims',
      actions: [
        ...s.finished.map(pod => remove(pod, 'Finished')),
        ...retirements(s, cast),
        ...unfit.filter(pod => !pod.waking).map(pod => remove(pod, 'Outdated')),
      ],
    },
  ]
  if (healthy.some(pod => pod.waking)) return stages
  const { stages: below, exact } = refill(s, tools, left(fit), left(cold))
  stages.push(...below)
  return exact ? together(s, stages) : stages
}

/** Ms until a primary that is being deleted is not waited for any longer; undefined where none is. */
export function untilDeparture(s: Snapshot): number | undefined {
  const left = [...(s.memory?.slots.values() ?? [])].flatMap(({ holderGoesBy }) =>
    holderGoesBy === undefined || holderGoesBy <= s.now ? [] : [holderGoesBy - s.now],
  )
  return left.length === 0 ? undefined : Math.min(...left)
}

/** As `castOf`; but the Lease knows better than labels who has been succeeded. */
function castByLease(s: Snapshot, { slots }: MemoryView): Cast {
  const isSucceeded = (pod: PodView) => {
    const lease = slots.get(pod.slot ?? -1)?.lease
    return lease !== undefined && lease.holder.uid !== pod.uid && pod.epoch < lease.epoch
  }
  const [succeeded, others] = partition(
    s.pods.filter(pod => pod.kind === 'primary'),
    isSucceeded,
  )
  const cast = castOf(others)
  return { ...cast, superseded: [...cast.superseded, ...succeeded] }
}

interface Failure {
  readonly pod: PodView
  readonly reason: LossReason
}

function failures(s: Snapshot, { slots }: MemoryView, cast: Cast): Failure[] {
  return cast.primaries.flatMap((pod): Failure[] => {
    if (pod.slot === undefined || pod.waking || pod.stage?.summoned || cast.slotless.includes(pod)) return []
    const slot = slots.get(pod.slot)
    if (slot !== undefined && slot.lease.holder.uid !== pod.uid) return []
    const isEmpty = pod.stage?.understudy === true && pod.stage.failed !== undefined
    if (pod.stage?.died || isEmpty) return [{ pod, reason: 'Died' }]
    const reason = failureOf(s, pod)
    return reason === undefined ? [] : [{ pod, reason }]
  })
}

/** A death that could be a failover is told by the agent at once; the kubelet's word is waited with for so long, ms. */
const tellingMs = 15_000

/** The kubelet has restarted the app of a primary, and nobody said that another pod should go on with its memory. */
function beganAnew(
  s: Snapshot,
  { slots }: MemoryView,
  pod: PodView,
  candidates: readonly PodView[],
): boolean {
  const slot = slots.get(pod.slot ?? -1)
  const { stage } = pod
  if (slot?.restarts === undefined || slot.lease.holder.uid !== pod.uid) return false
  if (stage === undefined || stage.understudy || stage.restarts <= slot.restarts) return false
  const isLate = stage.restartedAt !== undefined && s.now - stage.restartedAt >= tellingMs
  return isLate || optionsOf(slot, candidates).length === 0
}

interface Vacancies {
  /** Their primary is going, and its app has not been stopped yet. They keep their place. */
  readonly waiting: readonly SlotMemory[]
  /** To be filled now. */
  readonly open: readonly SlotMemory[]
  /** The set has become smaller: nobody will hold them. */
  readonly needless: readonly SlotMemory[]
}

/** Slots whose primary is gone, as many as the set still wants; those whose memory can be had come first. */
function vacancies(s: Snapshot, { slots }: MemoryView, cast: Cast, fit: readonly PodView[]): Vacancies {
  const held = new Set(cast.primaries.map(pod => pod.slot))
  const rank = (slot: SlotMemory) =>
    Math.min(3, ...optionsOf(slot, fit).map(option => option.rank)) + (isGoing(s, slot) ? 0 : 0.5)
  const left = [...slots.values()].filter(({ lease }) => !held.has(lease.slot))
  left.sort((a, b) => rank(a) - rank(b) || a.lease.slot - b.lease.slot)
  const room = Math.max(0, s.set.replicas - cast.primaries.length)
  const [waiting, open] = partition(left.slice(0, room), slot => isGoing(s, slot))
  return { waiting, open, needless: left.slice(room) }
}

/**
 * Its agent is about to stop it, and then somebody goes on with its memory. Where there is none to go on with, the
 * primary runs out its grace and nothing is waited for.
 */
export const isGoing = (s: Snapshot, slot: SlotMemory): boolean =>
  slot.holderGoesBy !== undefined &&
  slot.holderGoesBy > s.now &&
  slot.copies.some(({ report }) => report.usable !== undefined)

/** Which of the pods could go on stage with this slot's memory: frozen before staged, word that is fresh before old. */
export function optionsOf(slot: SlotMemory | undefined, pods: readonly PodView[]): Option[] {
  const usable = slot?.copies.filter(({ report }) => report.usable !== undefined) ?? []
  // Numbers begin anew with an epoch: the time tells which memory is newer.
  const times = [...new Set(usable.map(madeAt))].sort((a, b) => b - a)
  return pods.flatMap(({ uid, node, stage }) => {
    const copy = usable.find(each => each.node === node)
    if (copy === undefined || !fitsMemory(stage?.restoreHash, slot?.lease.restoreHash)) return []
    const isFrozen = copy.report.usable === 'Frozen' && copy.report.understudyUid === uid
    const behind = Math.min(99, times.indexOf(madeAt(copy))) / 100
    // Of equals the heir: that is where connections to the dead pod are sent already.
    const isHeir = slot?.lease.heir?.uid === uid ? 0 : 0.001
    return [{ uid, rank: (copy.stale ? 2 : 0) + (isFrozen ? 0 : 1) + behind + isHeir }]
  })
}

export function promotion(slot: SlotMemory, pod: PodView, role: Role, s: Snapshot): Action {
  const { lease, resourceVersion } = slot
  return {
    type: 'promote',
    pod,
    role,
    lease: {
      ...lease,
      holder: { name: pod.name, uid: pod.uid },
      epoch: role.epoch,
      node: pod.node,
      heir: undefined,
      holders: lease.holders.filter(node => node !== pod.node),
      handover: undefined,
    },
    version: resourceVersion,
    origin: originOn(slot, pod, s),
  }
}

function originOn({ copies }: SlotMemory, pod: PodView, s: Snapshot): Origin | undefined {
  const copy = copies.find(({ node }) => node === pod.node)
  if (copy === undefined) return undefined
  const { report } = copy
  return {
    how: report.usable === 'Frozen' && report.understudyUid === pod.uid ? 'Frozen' : 'Staged',
    generation: report.generation,
    bytes: report.bytes ?? 0,
    takenAt: takenAt(copy, s),
    takenAtSource: Date.parse(report.takenAt ?? ''),
  }
}

/** The kubelet publishes that a pod is ready within a second or so; longer is not waited for, ms. */
const selectableMs = 2_000

/** Ms for which Services that select their pods may not lead to this one yet. */
const msUntilSelectable = (s: Snapshot, { stage }: PodView): number =>
  stage?.understudy !== true || stage.selectable || stage.servingSince === undefined
    ? 0
    : Math.max(0, stage.servingSince + selectableMs - s.now)

/**
 * Losers leave the stage when their successor is on it and can be found there; until then connections through them end
 * at the successor, and a Service that selects its pods would lead nowhere.
 */
function retirements(s: Snapshot, cast: Cast): Action[] {
  const present = new Map(
    cast.primaries
      .filter(pod => !pod.stage?.summoned && !pod.waking && msUntilSelectable(s, pod) === 0)
      .map(pod => [pod.slot, pod]),
  )
  return (
    cast.superseded
      // Who is to be replaced by a pod that begins anew serves until that one does.
      .filter(pod => present.has(pod.slot) && !pod.waking && (!pod.ready || present.get(pod.slot)?.ready))
      .map(pod => ({ type: 'retire', pod }))
  )
}

/** Ms until a loser may leave although the kubelet has not published its successor; undefined where none waits. */
export function untilRetirement(s: Snapshot): number | undefined {
  if (s.memory === undefined) return undefined
  const { primaries, superseded } = castByLease(s, s.memory)
  const left = primaries
    .filter(({ slot }) => superseded.some(pod => pod.slot === slot))
    .map(pod => msUntilSelectable(s, pod))
    .filter(ms => ms > 0)
  return left.length === 0 ? undefined : Math.min(...left)
}

const lostPrimary = (s: Snapshot, pod: PodView, slot: number, reason: LossReason): LostPrimary => {
  const known = s.lost.get(slot)
  if (known?.name === pod.name) return known
  return { name: pod.name, slot, epoch: pod.epoch, reason, seenAt: s.monotonicNow }
}

/** The holder went while nobody looked. */
const lostHolder = (s: Snapshot, { lease }: SlotMemory): LostPrimary => ({
  name: lease.holder.name,
  slot: lease.slot,
  epoch: lease.epoch,
  reason: 'PodDeleted',
  seenAt: s.monotonicNow,
})

function partition<T>(items: readonly T[], test: (item: T) => boolean): [T[], T[]] {
  return [items.filter(test), items.filter(item => !test(item))]
}
