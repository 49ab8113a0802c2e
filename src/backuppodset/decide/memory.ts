import type { Random } from '../../kube/random.ts'
import type { Role } from '../../slot/decide/actions.ts'
import { assignments, type Players } from '../../slot/decide/assignments.ts'
import { dueStatements, isLongOutOfReach } from '../../slot/decide/fence/verdict.ts'
import { endsOfGrants } from '../../slot/decide/grant.ts'
import type { MemoryView, SlotMemory } from '../../slot/decide/memory-view.ts'
import { unfinished } from '../../slot/decide/successors.ts'
import { vacantLeases } from '../../slot/decide/vacant-leases.ts'
import type { Action, Tier } from '../plan.ts'
import type { PodView, Snapshot } from '../snapshot.ts'
import type { Backups } from './candidates.ts'
import { clones } from './clones.ts'
import { together } from './converge.ts'
import { beganAnew, failures, unwanted } from './deaths.ts'
import { turnOf } from './handover-turns.ts'
import { runningTargetsFor } from './moves.ts'
import { placingFor } from './near.ts'
import { partition } from './partition.ts'
import { primariesByLease, untimelySuccessors } from './primaries-by-lease.ts'
import { type PrimarySets, roleGiver } from './primary-sets.ts'
import { refill } from './refill.ts'
import { relaysOf } from './relay.ts'
import { drop, isRetained, leave, marksOf, reclaim } from './retention.ts'
import type { Policies } from './select.ts'
import { retireSuperseded } from './superseded.ts'
import { type Suspension, suspensionOf } from './suspension.ts'
import { type Takeovers, takeovers } from './takeovers.ts'
import { goes, remove, removed, rewakes, type Tools, toolsOf } from './tools.ts'
import { ungrantedSlots } from './ungranted.ts'
import { isGivenUp } from './update.ts'
import { type Vacancies, vacancies } from './vacancies.ts'

/**
 * Algorithm 1 for sets that keep memory. A slot that lost its primary goes to a hot backup, to a cold one, or to a pod
 * that is made for it, in this order, as long as a node has its memory or may have it. A backup without that memory is
 * no successor, since no app runs in it. Once every node that kept the memory reports that it has none, the slot begins
 * a new incarnation: in place if the kubelet restarts the container, else in a new pod.
 */
export function convergeWithMemory(
  s: Snapshot,
  memory: MemoryView,
  random: Random,
  policies: Policies,
): Tier[] {
  const tools = toolsOf(s, random, policies)
  const untimely = untimelySuccessors(s, memory)
  const cast = primariesByLease(s, memory, untimely)
  const relays = relaysOf(s)
  const backups = backupsOf(s, memory, relays)
  const primaries = planPrimaries(s, memory, tools, cast, backups)
  const { actions, healthy, leaving, taken } = primaries
  const { hot, cold, unfit, calledOff } = backups

  const converted = new Set(actions.flatMap(action => ('pod' in action ? [action.pod.uid] : [])))
  // A pod made for a slot does not count as a hot backup until the slot has a primary.
  const unfilled = new Set([...taken.expecting, ...taken.late])
  const isExpected = (pod: PodView) => unfilled.has(pod.stage?.successorOf ?? -1) || relays.includes(pod)
  const left = (pods: readonly PodView[]) => pods.filter(pod => !converted.has(pod.uid) && !isExpected(pod))
  const marks = marksOf(s, leaving)
  const words = [...dueStatements(s), ...endsOfGrants(s)]
  const covering = {
    hot,
    understudies: left(hot),
    relays: hot.filter(pod => relays.includes(pod) && !converted.has(pod.uid)),
  }
  const tiers: Tier[] = [
    ...(words.length > 0 ? [{ tier: 'assignments', aside: true, actions: words } as const] : []),
    ...(marks.length > 0 ? [{ tier: 'assignments', actions: marks } as const] : []),
    { tier: 'primaries', actions },
    {
      tier: 'assignments',
      aside: true,
      actions: leaseWrites(s, memory, random, cast, primaries, covering),
    },
    {
      tier: 'claims',
      actions: [
        ...s.finished.map(pod => remove(pod, 'Finished')),
        ...untimely.map(pod => remove(pod, 'Misfit')),
        ...retireSuperseded(memory, cast),
        ...calledOff.map(pod => remove(pod, 'CalledOff')),
        ...unfit
          .filter(pod => !pod.waking)
          .map(pod => remove(pod, pod.stage?.spoiled ? 'Spoiled' : 'Outdated')),
      ],
    },
  ]
  if (healthy.some(pod => pod.waking)) return tiers
  // A late cold backup may still come on stage: `refill` must not delete it as a pod whose gate is spent.
  const coldLeft = left(cold).filter(pod => pod.stage?.late !== true)
  const placing = placingFor(s, memory, nodesAfter(memory, actions, unfilled))
  return together(s, [...tiers, ...refill(s, tools, left(hot), coldLeft, placing)])
}

/** Returns the node of each slot's primary after the actions of this pass, for the slots that have one then. */
const nodesAfter = (
  { slots }: MemoryView,
  actions: readonly Action[],
  unfilled: ReadonlySet<number>,
): ReadonlyMap<number, string> =>
  new Map(
    [...slots.values()].flatMap(slot => {
      const { slot: number, node: now } = slot.lease
      const promotion = actions.find(each => each.type === 'promote' && each.role.slot === number)
      const node = promotion?.type === 'promote' ? promotion.pod.node : now
      return node === undefined || isRetained(slot) || unfilled.has(number) ? [] : [[number, node] as const]
    }),
  )

/** The tier of the primaries, and the facts that the tiers below need of it. */
interface PrimaryPlan {
  readonly actions: readonly Action[]
  readonly taken: Takeovers
  readonly unheld: Vacancies
  /** Primaries that no other pod replaces. */
  readonly healthy: readonly PodView[]
  /** The surplus among them. */
  readonly leaving: readonly PodView[]
  /** Primaries that have their slot and stay. */
  readonly settled: readonly PodView[]
  /** Roles of new slots that begin with the memory of another pod: each has a Lease first, and then a successor. */
  readonly cloning: readonly Role[]
  /** Only for a set that is to be suspended. */
  readonly suspension: Suspension | undefined
}

function planPrimaries(
  s: Snapshot,
  memory: MemoryView,
  tools: Tools,
  cast: PrimarySets,
  { hot, cold, called }: CastBackups,
): PrimaryPlan {
  const suspension = s.set.suspended ? suspensionOf(s, memory) : undefined
  const unheld = vacancies(s, memory, cast, [...hot, ...cold])
  const places = s.set.replicas - unheld.waiting.length - unheld.vacant.length
  const over = Math.max(0, cast.primaries.length - places)
  const { replicasToUnallocated } = s.set.strategy
  const leaving = suspension
    ? suspension.leaving.filter(pod => cast.primaries.includes(pod))
    : tools.leaving(cast.primaries, over, replicasToUnallocated, pod => called.has(pod.uid))
  // A promotion that is called off may take minutes to end. A primary that stays does not wait for that to be replaced.
  const failing = leaving.every(({ uid }) => called.has(uid))
    ? failures(s, memory, cast).filter(({ pod }) => !leaving.includes(pod))
    : []
  const taken = takeovers(s, memory, tools, { hot, cold }, { failing, vacancies: unheld })
  const healthy = cast.primaries.filter(pod => !taken.replaced.has(pod))
  const settled = healthy.filter(pod => !cast.slotless.includes(pod) && !goes(removed(leaving), pod))
  const { waiting, vacant, retained } = unheld
  const filled =
    cast.primaries.length + waiting.length + vacant.length + retained.length + unheld.abandoned.length
  const { newLives } = taken
  const without = primariesWithoutMemory(s, memory, tools, cast, { healthy, leaving, newLives, filled })
  const actions = [
    ...taken.actions,
    ...unfinishedPromotions(s, memory, healthy, leaving),
    ...without.actions,
    ...rewakes(settled.filter(pod => !pod.stage?.promoting)),
  ]
  return { actions, taken, unheld, healthy, leaving, settled, cloning: without.cloning, suspension }
}

/** Returns the writes of Leases that no other tier waits for. */
function leaseWrites(
  s: Snapshot,
  memory: MemoryView,
  random: Random,
  cast: PrimarySets,
  { taken, unheld, healthy, leaving, settled, cloning, suspension }: PrimaryPlan,
  { hot, understudies, relays }: Pick<Players, 'understudies' | 'relays'> & Pick<Backups, 'hot'>,
): readonly Action[] {
  const emptied = healthy.flatMap(pod => (pod.slot !== undefined && beganAnew(memory, pod) ? [pod.slot] : []))
  const turn = turnOf(s)
  const ungranted = ungrantedSlots(s, memory, { taken, suspension, healthy, settled, turn })
  return [
    ...assignments(s, memory, random, {
      ...{ primaries: settled, understudies, relays, targets: runningTargetsFor(s) },
      ...{ ending: taken.ending, emptied: new Set(emptied) },
      ...{ owner: s.set, turn, isGivenUp: slot => isGivenUp(s, slot) },
      ...{ unwanted: unwanted(s, memory, settled), ungranted },
      ...(suspension && { saving: suspension.saving }),
    }),
    ...vacantLeases(s, memory, {
      ...{ hot, expecting: taken.expecting },
      ending: new Set(taken.late.filter(slot => taken.ending.has(slot))),
      outOfReach: unheld.waiting.flatMap(slot => (isLongOutOfReach(s, slot) ? [slot.lease.slot] : [])),
      ungranted,
      waiting: unheld.waiting.map(({ lease }) => lease.slot),
      called: cast.primaries.flatMap(({ slot, stage }) => (stage?.promoting ? (slot ?? []) : [])),
    }),
    ...reclaim([...unheld.retained, ...calledBack(memory, cast, leaving)]),
    ...leave(s, unheld.needless),
    ...drop(s, unheld.abandoned),
    ...clones(s, memory, random, { fresh: cloning, again: taken.uncloned }),
  ]
}

interface CastBackups extends Backups {
  /** Pods that the Lease of a retained slot names: they were called to it, and can take no other slot. */
  readonly called: ReadonlySet<string>
  /** Backups in which no memory can be restored. */
  readonly unfit: readonly PodView[]
  /** Backups that wait for nodes which nothing asks for any more. */
  readonly calledOff: readonly PodView[]
}

function backupsOf(s: Snapshot, { slots }: MemoryView, relays: readonly PodView[]): CastBackups {
  const called = new Set([...slots.values()].filter(isRetained).map(({ lease }) => lease.holder.uid))
  // If they counted, a slot whose primary fails meanwhile would wait for them: other nodes may have room.
  const [nowhere, present] = partition(
    s.pods.filter(pod => pod.kind !== 'primary'),
    pod => pod.node === undefined && pod.stage?.confined === true,
  )
  const calledOff = nowhere.filter(pod => !relays.includes(pod))
  const [fit, unfit] = partition(
    present,
    // Nothing can be restored in a dead or spoiled understudy again. A pod made before the set asked for memory runs
    // the app, or would once its gate opens.
    pod =>
      pod.stage?.keeps === true &&
      pod.stage.understudy &&
      !pod.stage.died &&
      !pod.stage.spoiled &&
      !called.has(pod.uid),
  )
  const [hot, cold] = partition(fit, pod => pod.kind === 'hotbackup')
  return { hot, cold, called, unfit, calledOff }
}

/** Continues the promotions for which this leader or an earlier one has won the Lease. */
const unfinishedPromotions = (
  s: Snapshot,
  { slots }: MemoryView,
  primaries: readonly PodView[],
  leaving: readonly PodView[],
): Action[] =>
  primaries.flatMap(pod => {
    const slot = slots.get(pod.slot ?? -1)
    const isUnfinished = pod.stage?.promoting && !pod.waking && !leaving.includes(pod)
    return isUnfinished && slot !== undefined ? [unfinished(slot, pod, s)] : []
  })

/**
 * Gives slots to primaries that have none, deletes surplus primaries, and makes pods for new incarnations. All new roles of a pass
 * come from here, so no two pods get one slot.
 */
function primariesWithoutMemory(
  s: Snapshot,
  memory: MemoryView,
  tools: Tools,
  cast: PrimarySets,
  of: {
    readonly healthy: readonly PodView[]
    readonly leaving: readonly PodView[]
    readonly newLives: readonly Role[]
    /** Slots that have a primary or will have one again. */
    readonly filled: number
  },
): Pick<PrimaryPlan, 'actions' | 'cloning'> {
  const slotless = cast.slotless.filter(pod => of.healthy.includes(pod))
  const surplus = removed(of.leaving, s.set.suspended ? 'Suspended' : 'Surplus')
  const nextRole = roleGiver(
    s,
    [
      ...memory.slots.keys(),
      ...cast.primaries.flatMap(pod => (pod.slot === undefined || slotless.includes(pod) ? [] : [pod.slot])),
    ],
    [],
  )
  const given = slotless
    .filter(pod => !pod.waking && !goes(surplus, pod))
    .map((pod): Action => ({ type: 'convert', pod, to: 'primary', role: nextRole(), wake: false }))
  const fresh = Array.from({ length: Math.max(0, s.set.replicas - of.filled) }, nextRole)
  const isCloned = s.set.cloneFrom !== undefined
  // Only a new pod runs the app by itself: backups hold the place for memory, cold ones too once they are woken.
  const made = [...of.newLives, ...(isCloned ? [] : fresh)].map(role =>
    tools.creating('primary', s.set.strategy.unallocatedToReplicas, () => role),
  )
  return { actions: [...given, ...surplus, ...made], cloning: isCloned ? fresh : [] }
}

/**
 * Returns retained slots whose promotion was called off while it was in progress, and for which the set has a place again:
 * the agent resumes them.
 */
const calledBack = (
  { slots }: MemoryView,
  cast: PrimarySets,
  leaving: readonly PodView[],
): readonly SlotMemory[] =>
  cast.primaries.flatMap(pod => {
    const slot = slots.get(pod.slot ?? -1)
    return slot && isRetained(slot) && pod.stage?.promoting && !leaving.includes(pod) ? [slot] : []
  })
