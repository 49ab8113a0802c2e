import type { Random } from '../../kube/random.ts'
import { match } from '../../succession/match.ts'
import { endOf, isGone } from '../memory/knowledge.ts'
import { publishedMs } from '../memory/stage.ts'
import type { MemoryView, SlotMemory } from '../memory/view.ts'
import type { Action, Role, Tier } from '../plan.ts'
import type { LossReason, LostPrimary, PodView, Snapshot } from '../snapshot.ts'
import { assignments, vacantLeases } from './assignments.ts'
import { msUntilReplaced } from './breaker.ts'
import { together } from './converge.ts'
import { latecomerOf, msUntilEnded, msUntilGivenUp } from './ending.ts'
import { failureOf } from './failing.ts'
import { lastResort } from './last-resort.ts'
import { type PrimarySets, partitionPrimaries, roleGiver, roleIn } from './primary-sets.ts'
import { refill } from './refill.ts'
import { relaysOf } from './relay.ts'
import { isRetained, leave, marksOf, reclaim } from './retention.ts'
import { revisionFor } from './revisions.ts'
import type { Policies } from './select.ts'
import {
  callable,
  candidatesOf,
  nodesWith,
  optionsOf,
  promotion,
  slowRank,
  unfinished,
} from './successors.ts'
import { goes, remove, removed, rewakes, toolsOf } from './tools.ts'
import { isGivenUp } from './update.ts'

/**
 * Algorithm 1 for sets that keep memory. A slot that lost its primary goes to a hot backup, to a cold one, or to a pod
 * that is made for it, in this order, as long as a node has its memory or may have it. A backup without that memory is
 * no successor, since no app runs in it. Once every node that kept the memory reports that it has none, the slot begins
 * a new life: in place if the kubelet restarts the container, else in a new pod.
 */
export function convergeWithMemory(
  s: Snapshot,
  memory: MemoryView,
  random: Random,
  policies: Policies,
): Tier[] {
  const { strategy, replicas } = s.set
  const tools = toolsOf(s, random, policies)
  const untimely = untimelySuccessors(s, memory)
  const cast = castByLease(s, memory, untimely)
  const called = new Set([...memory.slots.values()].filter(isRetained).map(({ lease }) => lease.holder.uid))
  const [backups, unfit] = partition(
    s.pods.filter(pod => pod.kind !== 'primary'),
    // Nothing can be restored in a dead or spoiled understudy again. A pod made before the set asked for memory runs
    // the app, or would once its gate opens.
    pod =>
      pod.stage?.keeps === true &&
      pod.stage.understudy &&
      !pod.stage.died &&
      !pod.stage.spoiled &&
      // The pod was called to a slot for which the set has no place by now: that Lease names it, and it can take no
      // other slot.
      !called.has(pod.uid),
  )
  const fit = backups.filter(pod => pod.kind === 'hotbackup')
  const cold = backups.filter(pod => pod.kind === 'coldbackup')

  // Slots that need a successor: those of primaries that failed, and those whose primary is gone.
  const over = Math.max(0, cast.primaries.length - replicas)
  const failing = over > 0 ? [] : failures(s, memory, cast)
  const { waiting, vacant: unheld, retained, needless } = vacancies(s, memory, cast, backups)
  const [coming, open] = partition(unheld, slot => msUntilGivenUp(s, slot) > 0)
  // A pod that was called to a slot and failed stays named there until another is: no two Leases name the same pod.
  const named = new Set([...memory.slots.values()].map(({ lease }) => lease.holder.uid))
  const candidates = candidatesOf(fit, cold).filter(({ uid }) => !named.has(uid))
  const wishes = new Map([
    ...failing.map(({ pod: { slot = -1 }, reason }) => {
      const options = callable(s, memory.slots.get(slot), candidates)
      // A primary that still runs is not given up for a start that takes seconds.
      return [slot, reason === 'Died' ? options : options.filter(({ rank }) => rank < slowRank)] as const
    }),
    ...open.map(slot => [slot.lease.slot, callable(s, slot, candidates)] as const),
  ])
  const taken = match(wishes)
  const successorOf = (slot: number | undefined) =>
    candidates.find(pod => slot !== undefined && pod.uid === taken.get(slot))

  const primaryActions: Action[] = []
  const replaced = new Set<PodView>()
  /** Slots in which a pod is to be terminated before another one is called. */
  const ending = new Set<number>()
  const vacant: Role[] = []
  /** Slots that wait for a pod made for them, or for their memory. */
  const expecting = new Set<number>()
  const makeFor = (slot: SlotMemory, role: Role) => {
    const next = lastResort(s, slot, fit)
    if (next === 'anew')
      vacant.push({ ...role, startsEmpty: isGone(slot) ? 'Gone' : 'GivenUp', ...endOf(memory, slot) })
    else expecting.add(slot.lease.slot)
    if (next !== 'make') return
    const { revision: _, ...made } = tools.creating('hotbackup', strategy.unallocatedToReplicas)
    const { slot: number, restoreHash = '' } = slot.lease
    const revision = restoreHash === s.restoreHash ? undefined : revisionFor(s, restoreHash)
    primaryActions.push({
      ...made,
      ...(revision && { revision }),
      successorOf: { slot: number, near: nodesWith(slot) },
    })
  }
  /**
   * Calls the successor, or marks the slot until the rival has ended.
   * @param rival a pod that may still run with this memory. @returns true if the successor is called now.
   */
  const call = (slot: SlotMemory, successor: PodView, role: Role, rival: PodView | undefined): boolean => {
    const isEnded = rival === undefined || msUntilEnded(s, slot, rival) <= 0
    if (isEnded) primaryActions.push(promotion(slot, successor, role, s))
    else ending.add(slot.lease.slot)
    return isEnded
  }
  for (const { pod, reason } of failing) {
    const slot = memory.slots.get(pod.slot ?? -1)
    const successor = successorOf(pod.slot)
    if (pod.slot === undefined) continue
    if (msUntilReplaced(s, pod.slot, reason) > 0) {
      if (reason === 'Died') replaced.add(pod)
      continue
    }
    const role = roleIn(s, pod.slot, lostPrimary(s, pod, pod.slot, reason))
    if (slot !== undefined && successor !== undefined) {
      if (call(slot, successor, role, reason === 'Died' ? undefined : pod)) replaced.add(pod)
    } else if (reason === 'Died') {
      // The agent that declared the pod dead has shut it off, and an understudy runs only what is restored in it: it
      // does not come back.
      if (slot === undefined) vacant.push({ ...role, startsEmpty: 'Gone' })
      else makeFor(slot, role)
      replaced.add(pod)
    }
  }
  for (const slot of open) {
    const successor = successorOf(slot.lease.slot)
    const role = roleIn(s, slot.lease.slot, s.lost.get(slot.lease.slot) ?? lostHolder(s, slot))
    if (successor !== undefined) call(slot, successor, role, latecomerOf(s, slot))
    else makeFor(slot, role)
  }
  // A pod may be made while the previous primary is being stopped, or while a called pod may still come.
  for (const slot of [...waiting, ...coming]) {
    const next = lastResort(s, slot, fit)
    if (next === 'awaited' || (next === 'make' && callable(s, slot, candidates).length === 0))
      makeFor(slot, roleIn(s, slot.lease.slot, undefined))
  }
  const healthy = cast.primaries.filter(pod => !replaced.has(pod))
  const slotless = cast.slotless.filter(pod => healthy.includes(pod))
  const leaving = tools.leaving(healthy, over, strategy.replicasToUnallocated, pod => called.has(pod.uid))
  const surplusPrimaries = removed(leaving)
  // Unfinished promotions: this leader or an earlier one has won the Lease.
  for (const pod of healthy) {
    const slot = memory.slots.get(pod.slot ?? -1)
    if (pod.stage?.promoting && !pod.waking && slot !== undefined && !leaving.includes(pod))
      primaryActions.push(unfinished(slot, pod, s))
  }
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
  const filled = cast.primaries.length + waiting.length + unheld.length + retained.length
  for (let fresh = replicas - filled; fresh > 0; fresh -= 1) vacant.push(nextRole())
  // Only a new pod runs the app by itself: backups hold the place for memory, cold ones too once they are woken.
  for (const role of vacant)
    primaryActions.push(tools.creating('primary', strategy.unallocatedToReplicas, () => role))
  primaryActions.push(
    ...rewakes(
      healthy.filter(pod => !slotless.includes(pod) && !pod.stage?.promoting && !goes(surplusPrimaries, pod)),
    ),
  )

  const converted = new Set(primaryActions.flatMap(action => ('pod' in action ? [action.pod.uid] : [])))
  // A pod made for a slot does not count as a hot backup until the slot has a primary.
  const late = [...coming, ...open.filter(({ lease }) => ending.has(lease.slot))]
  const unfilled = new Set([...expecting, ...late.map(({ lease }) => lease.slot)])
  const relays = relaysOf(s)
  const isExpected = (pod: PodView) => unfilled.has(pod.stage?.successorOf ?? -1) || relays.includes(pod)
  const left = (pods: readonly PodView[]) => pods.filter(pod => !converted.has(pod.uid) && !isExpected(pod))
  const marks = marksOf(s, leaving)
  // The promotion was called off while it was in progress, and the set has a place for the slot again: the agent
  // resumes it.
  const calledBack = cast.primaries.flatMap(pod => {
    const slot = memory.slots.get(pod.slot ?? -1)
    return slot && isRetained(slot) && pod.stage?.promoting && !leaving.includes(pod) ? [slot] : []
  })
  const tiers: Tier[] = [
    ...(marks.length > 0 ? [{ tier: 'assignments', actions: marks } as const] : []),
    { tier: 'primaries', actions: primaryActions },
    {
      tier: 'assignments',
      aside: true,
      actions: [
        ...assignments(s, memory, random, {
          primaries: healthy.filter(pod => !slotless.includes(pod) && !goes(surplusPrimaries, pod)),
          understudies: left(fit),
          relays: fit.filter(pod => relays.includes(pod) && !converted.has(pod.uid)),
          ending,
          emptied: new Set(
            healthy.flatMap(pod => (pod.slot !== undefined && beganAnew(memory, pod) ? [pod.slot] : [])),
          ),
        }),
        ...vacantLeases(s, memory, {
          ...{ hot: fit, expecting },
          ending: new Set(late.flatMap(({ lease: { slot } }) => (ending.has(slot) ? [slot] : []))),
          called: cast.primaries.flatMap(({ slot, stage }) => (stage?.promoting ? (slot ?? []) : [])),
        }),
        ...reclaim([...retained, ...calledBack]),
        ...leave(s, needless),
      ],
    },
    {
      tier: 'claims',
      actions: [
        ...s.finished.map(pod => remove(pod, 'Finished')),
        ...untimely.map(pod => remove(pod, 'Misfit')),
        ...retirements(memory, cast),
        ...unfit
          .filter(pod => !pod.waking)
          .map(pod => remove(pod, pod.stage?.spoiled ? 'Spoiled' : 'Outdated')),
      ],
    },
  ]
  if (healthy.some(pod => pod.waking)) return tiers
  // A late cold backup may still come on stage: `refill` must not delete it as a pod whose gate is spent.
  return together(s, [
    ...tiers,
    ...refill(
      s,
      tools,
      left(fit),
      left(cold).filter(pod => pod.stage?.late !== true),
    ),
  ])
}

/**
 * Returns the ms until the operator stops waiting for a primary that is being deleted; undefined if it waits for none.
 */
export function untilDeparture(s: Snapshot): number | undefined {
  const left = [...(s.memory?.slots.values() ?? [])].flatMap(({ holderGoesBy }) =>
    holderGoesBy === undefined || holderGoesBy <= s.monotonicNow ? [] : [holderGoesBy - s.monotonicNow],
  )
  return left.length === 0 ? undefined : Math.min(...left)
}

/** Like `partitionPrimaries`, except that the Lease, and not a label, decides which primaries have been succeeded. */
function castByLease(s: Snapshot, { slots }: MemoryView, untimely: readonly PodView[]): PrimarySets {
  const isSucceeded = (pod: PodView) => {
    const lease = slots.get(pod.slot ?? -1)?.lease
    return lease !== undefined && lease.holder.uid !== pod.uid && pod.epoch < lease.epoch
  }
  const [succeeded, others] = partition(
    s.pods.filter(pod => pod.kind === 'primary' && !untimely.includes(pod)),
    isSucceeded,
  )
  const cast = partitionPrimaries(others)
  return { ...cast, superseded: [...cast.superseded, ...succeeded] }
}

/**
 * Returns pods that were to begin a new life of their slot beside its present primary, and will not: the roll that made
 * them has been taken back since, or they have died. The present primary stays.
 */
function untimelySuccessors(s: Snapshot, { slots }: MemoryView): readonly PodView[] {
  return s.pods.filter(pod => {
    const slot = slots.get(pod.slot ?? -1)
    if (pod.kind !== 'primary' || slot === undefined || pod.epoch <= slot.lease.epoch) return false
    const holder = s.pods.find(({ uid }) => uid === slot.lease.holder.uid)
    const isOnStage = holder?.kind === 'primary' && holder.ready && holder.stage?.died !== true
    return isOnStage && (pod.stage?.died === true || !isGivenUp(s, slot))
  })
}

interface Failure {
  readonly pod: PodView
  readonly reason: LossReason
}

function failures(s: Snapshot, { slots }: MemoryView, cast: PrimarySets): Failure[] {
  return cast.primaries.flatMap((pod): Failure[] => {
    if (pod.slot === undefined || pod.waking || pod.stage?.promoting || cast.slotless.includes(pod)) return []
    const slot = slots.get(pod.slot)
    // A pod that began a new life of the slot may die before its Lease names it.
    const isNamed = slot === undefined || slot.lease.holder.uid === pod.uid
    if (!isNamed && !(pod.stage?.died && pod.epoch > slot.lease.epoch)) return []
    const isEmpty = pod.stage?.understudy === true && pod.stage.failed !== undefined
    if (pod.stage?.died || isEmpty || isUntoldDeath(s, slot, pod)) return [{ pod, reason: 'Died' }]
    const reason = failureOf(s, pod)
    return reason === undefined ? [] : [{ pod, reason }]
  })
}

/** How long to wait for an agent that is away to report a death, ms. A running agent reports it at once. */
const tellingMs = 15_000

/** The kubelet has started another app in the primary, and no node has, or may have, the memory of the app before. */
function beganAnew({ slots }: MemoryView, pod: PodView): boolean {
  const slot = slots.get(pod.slot ?? -1)
  return isReplaced(slot, pod) && pod.stage?.understudy === false && isGone(slot)
}

/**
 * The kubelet has started another app in the primary, but the memory of the app before is kept, or the pod is an
 * understudy: this is a death that no agent has reported, and not the beginning of another life.
 */
const isUntoldDeath = (s: Snapshot, slot: SlotMemory | undefined, pod: PodView): boolean =>
  isReplaced(slot, pod) &&
  s.monotonicNow - slot.replacedSince >= tellingMs &&
  (pod.stage?.understudy === true || !isGone(slot))

const isReplaced = (
  slot: SlotMemory | undefined,
  pod: PodView,
): slot is SlotMemory & { readonly replacedSince: number } =>
  slot?.replacedSince !== undefined && slot.lease.holder.uid === pod.uid

/** Returns the ms until a death that no agent reports counts as reported; undefined if there is none to wait for. */
export function untilDeath(s: Snapshot): number | undefined {
  const left = [...(s.memory?.slots.values() ?? [])].flatMap(({ replacedSince }) => {
    const ms = replacedSince === undefined ? 0 : replacedSince + tellingMs - s.monotonicNow
    return ms > 0 ? [ms] : []
  })
  return left.length === 0 ? undefined : Math.min(...left)
}

/**
 * Returns the ms until a promoted primary whose node may be dead counts as unready: no watch event comes at that
 * moment.
 */
export function untilUnpublished(s: Snapshot): number | undefined {
  const left = s.pods.flatMap(({ kind, ready, stage }) =>
    kind === 'primary' && ready && stage?.unpublishedMs !== undefined
      ? [Math.max(0, publishedMs - stage.unpublishedMs) + 1]
      : [],
  )
  return left.length === 0 ? undefined : Math.min(...left)
}

interface Vacancies {
  /** Their primary is being deleted, and its app has not been stopped yet. They keep their place. */
  readonly waiting: readonly SlotMemory[]
  /** To be filled now. */
  readonly vacant: readonly SlotMemory[]
  /** Marked as having no place, although the set has one again. */
  readonly retained: readonly SlotMemory[]
  /** The set has become smaller: no pod will hold them. */
  readonly needless: readonly SlotMemory[]
}

/**
 * Splits the slots whose primary is gone into as many as the set still wants, and the rest. Slots whose memory is
 * available come first, retained slots last.
 */
function vacancies(
  s: Snapshot,
  { slots }: MemoryView,
  cast: PrimarySets,
  backups: readonly PodView[],
): Vacancies {
  const held = new Set(cast.primaries.map(pod => pod.slot))
  const rank = (slot: SlotMemory) =>
    Math.min(isGone(slot) ? 10 : 9, ...optionsOf(slot, backups).map(option => option.rank)) +
    (isGoing(s, slot) ? 0 : 0.5) +
    (isRetained(slot) ? 20 : 0)
  const [lost, left] = partition(
    [...slots.values()].filter(({ lease }) => !held.has(lease.slot)),
    slot => isRetained(slot) && isGone(slot),
  )
  left.sort((a, b) => rank(a) - rank(b) || a.lease.slot - b.lease.slot)
  const room = Math.max(0, s.set.replicas - cast.primaries.length)
  const [retained, wanted] = partition(left.slice(0, room), isRetained)
  const [waiting, vacant] = partition(wanted, slot => isGoing(s, slot))
  return { waiting, vacant, retained, needless: [...left.slice(room), ...lost] }
}

/**
 * The agent is about to stop the primary, and then a successor continues with its memory. If no memory is left, the
 * primary uses up its grace period and the slot does not wait for it.
 */
export const isGoing = (s: Snapshot, slot: SlotMemory): boolean =>
  !isRetained(slot) && slot.holderGoesBy !== undefined && slot.holderGoesBy > s.monotonicNow && !isGone(slot)

/** How long to wait for the kubelet to publish that a pod is ready, ms; it takes a second or so. */
const selectableMs = 2_000

/** Returns the ms for which Services that select their pods may not reach this pod yet. */
const msUntilSelectable = ({ stage }: PodView): number =>
  stage?.unpublishedMs === undefined ? 0 : Math.max(0, selectableMs - stage.unpublishedMs)

/**
 * Retires superseded primaries once their successor is on stage and Services can select it. Until then connections to a
 * superseded primary end at the successor, and a Service that selects its pods would have no endpoint without it.
 */
function retirements({ slots }: MemoryView, cast: PrimarySets): Action[] {
  const present = new Map(
    cast.primaries
      .filter(pod => !pod.stage?.promoting && !pod.waking && msUntilSelectable(pod) === 0)
      .map(pod => [pod.slot, pod]),
  )
  // The set has no place for the slot: no successor comes that the superseded primary would have to wait for.
  const isOver = (number = -1) => {
    const slot = slots.get(number)
    return slot !== undefined && isRetained(slot) && cast.primaries.every(pod => pod.slot !== number)
  }
  return (
    cast.superseded
      // A primary that a pod with a new life replaces serves until that pod does.
      .filter(
        pod =>
          !pod.waking &&
          (isOver(pod.slot) || (present.has(pod.slot) && (!pod.ready || present.get(pod.slot)?.ready))),
      )
      .map(pod => ({ type: 'retire', pod }))
  )
}

/**
 * Returns the ms until a superseded primary may retire although the kubelet has not published its successor; undefined
 * if none waits.
 */
export function untilRetirement(s: Snapshot): number | undefined {
  if (s.memory === undefined) return undefined
  const { primaries, superseded } = castByLease(s, s.memory, untimelySuccessors(s, s.memory))
  const left = primaries
    .filter(({ slot }) => superseded.some(pod => pod.slot === slot))
    .map(pod => msUntilSelectable(pod))
    .filter(ms => ms > 0)
  return left.length === 0 ? undefined : Math.min(...left)
}

const lostPrimary = (s: Snapshot, pod: PodView, slot: number, reason: LossReason): LostPrimary => {
  const known = s.lost.get(slot)
  if (known?.name === pod.name) return known
  const lost = { name: pod.name, slot, epoch: pod.epoch, reason, seenAt: s.monotonicNow }
  return pod.lastEnd === undefined ? lost : { ...lost, why: pod.lastEnd }
}

/** The primary disappeared while no operator watched. */
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
