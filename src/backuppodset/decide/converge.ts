import type { Strategy } from '../../api/backuppodset.ts'
import type { PodKind } from '../../api/labels.ts'
import type { Random } from '../../kube/random.ts'
import type { Action, DeleteReason, Role, Stage } from '../plan.ts'
import type { LostPrimary, PodView, Snapshot } from '../snapshot.ts'
import { replaceable } from './failing.ts'
import { podNamer } from './name.ts'
import { type Policies, type Purpose, readinessForConversion, readinessForDeletion, take } from './select.ts'
import { castOf, roleGiver } from './slots.ts'

/**
 * Algorithm 1 of the paper as one plan: convert the cheapest thing that is left, then refill.
 * Primaries first, hot backups when primaries are exact, cold ones when hot are exact. A pod that one tier converts
 * counts for the tiers below in the same plan. While a wake-up is under way its tier is not exact and the plan ends
 * there; its end starts the next pass.
 */
export function converge(s: Snapshot, random: Random, policies: Policies): Stage[] {
  const { strategy, replicas, hotBackups, coldBackups } = s.set
  const newName = podNamer(s, random)
  const pick = (
    candidates: readonly PodView[],
    count: number,
    rank: (pod: PodView) => number,
    policy: Strategy,
    purpose: Purpose,
  ) => take(candidates, count, rank, policies[policy], { purpose, peers: s.pods, random })
  const converting = (pods: readonly PodView[], count: number, policy: Strategy) =>
    pick(
      pods.filter(pod => !pod.waking),
      count,
      readinessForConversion,
      policy,
      'convert',
    )
  // A pod whose wake-up is under way does least of all, but is left alone until that ends: nobody goes in its stead.
  const surplus = (pods: readonly PodView[], count: number, policy: Strategy): Action[] =>
    pick(pods, count, pod => (pod.waking ? -1 : readinessForDeletion(pod)), policy, 'delete')
      .filter(pod => !pod.waking)
      .map(pod => remove(pod, 'Surplus'))
  const creating = (kind: PodKind, refill: Strategy, role?: () => Role): Action => ({
    type: 'create',
    kind,
    name: newName(),
    strategy: s.isNew ? strategy.init : refill,
    role: role?.(),
  })

  const hot = s.pods.filter(pod => pod.kind === 'hotbackup')
  const cold = s.pods.filter(pod => pod.kind === 'coldbackup')
  // A gate opens once. A cold pod whose gate is spent, or that never had one (relabelled by hand), is no cold backup any more, but the best pod to convert.
  const [spent, gated] = partition(cold, pod => !isGated(pod))
  const cast = castOf(s.pods.filter(pod => pod.kind === 'primary'))

  // Primaries.
  const missing = replicas - cast.primaries.length
  const failing =
    missing < 0
      ? []
      : replaceable(s, cast.primaries, {
          readyHot: hot.filter(pod => pod.ready).length - missing,
          // Hot backups are converted before cold ones, so none is left for a failing primary while one of them is unready.
          gatedCold: hot.every(pod => pod.ready)
            ? gated.filter(pod => pod.gate === 'waiting').length - Math.max(0, missing - hot.length)
            : 0,
        })
  const healthy = cast.primaries.filter(pod => !failing.some(failed => failed.pod === pod))
  const slotless = cast.slotless.filter(pod => healthy.includes(pod))
  const losses = failing.flatMap(({ pod, reason }): LostPrimary[] =>
    pod.slot === undefined
      ? []
      : [{ name: pod.name, slot: pod.slot, epoch: pod.epoch, reason, seenAt: s.monotonicNow }],
  )
  const nextRole = roleGiver(
    s,
    healthy.flatMap(pod => (pod.slot === undefined || slotless.includes(pod) ? [] : [pod.slot])),
    losses,
  )
  const primaryActions: Action[] = []
  const surplusPrimaries = surplus(healthy, Math.max(0, -missing), strategy.replicasToUnallocated)
  for (const pod of slotless)
    if (!pod.waking && !goes(surplusPrimaries, pod))
      primaryActions.push({ type: 'convert', pod, to: 'primary', role: nextRole(), wake: false })
  primaryActions.push(...surplusPrimaries)

  let short = Math.max(0, replicas - healthy.length)
  const fromHot = converting(hot, short, strategy.hotbackupToReplicas)
  short -= fromHot.length
  const fromCold = converting(cold, short, strategy.coldbackupToReplicas)
  short -= fromCold.length
  for (const pod of [...fromHot, ...fromCold])
    primaryActions.push({ type: 'convert', pod, to: 'primary', role: nextRole(), wake: isGated(pod) })
  for (; short > 0; short -= 1)
    primaryActions.push(creating('primary', strategy.unallocatedToReplicas, nextRole))
  // One write a pod: who is given a slot now is woken by the next pass.
  primaryActions.push(
    ...rewakes(healthy.filter(pod => !slotless.includes(pod) && !goes(surplusPrimaries, pod))),
  )

  const stages: Stage[] = [
    { tier: 'primaries', actions: primaryActions },
    { tier: 'claims', actions: [...s.finished.map(pod => remove(pod, 'Finished')), ...retirements(cast)] },
  ]
  if (healthy.some(pod => pod.waking)) return stages

  // Hot backups.
  const hotLeft = hot.filter(pod => !fromHot.includes(pod))
  const coldLeft = cold.filter(pod => !fromCold.includes(pod))
  short = Math.max(0, hotBackups - hotLeft.length)
  const toHot = converting(coldLeft, short, strategy.coldbackupToHotbackup)
  short -= toHot.length
  const hotActions: Action[] = toHot.map(pod => ({
    type: 'convert',
    pod,
    to: 'hotbackup',
    role: undefined,
    wake: isGated(pod),
  }))
  for (; short > 0; short -= 1) hotActions.push(creating('hotbackup', strategy.unallocatedToHotbackup))
  const surplusHot = surplus(hotLeft, hotLeft.length - hotBackups, strategy.hotbackupToUnallocated)
  hotActions.push(...surplusHot, ...rewakes(hotLeft.filter(pod => !goes(surplusHot, pod))))
  stages.push({ tier: 'hotbackups', actions: hotActions })
  if (hotLeft.some(pod => pod.waking)) return stages

  // Cold backups.
  const gatedLeft = gated.filter(pod => !fromCold.includes(pod) && !toHot.includes(pod))
  const spentLeft = spent.filter(pod => !fromCold.includes(pod) && !toHot.includes(pod))
  const coldActions: Action[] = spentLeft.map(pod => remove(pod, 'GateSpent'))
  for (let missingCold = coldBackups - gatedLeft.length; missingCold > 0; missingCold -= 1)
    coldActions.push(creating('coldbackup', strategy.unallocatedToColdbackup))
  coldActions.push(...surplus(gatedLeft, gatedLeft.length - coldBackups, strategy.coldbackupToUnallocated))
  stages.push({ tier: 'coldbackups', actions: coldActions })
  return together(s, stages)
}

/**
 * A new set is created, and surplus deleted, all at once: no such action needs another one's success. Tier after tier
 * the later ones would wait while the nodes are busy with the pods of the first.
 */
function together(s: Snapshot, stages: readonly Stage[]): Stage[] {
  const actions = stages.flatMap(stage => stage.actions)
  const isIndependent =
    (s.isNew && actions.every(({ type }) => type === 'create')) ||
    actions.every(action => action.type === 'delete' && action.reason === 'Surplus')
  return isIndependent ? [{ tier: 'together', actions }] : [...stages]
}

export const isGated = (pod: PodView): boolean => pod.gate === 'starting' || pod.gate === 'waiting'

export const remove = (pod: PodView, reason: DeleteReason): Action => ({ type: 'delete', pod, reason })

const goes = (actions: readonly Action[], pod: PodView): boolean =>
  actions.some(action => action.type === 'delete' && action.pod === pod)

/** A converted pod is back at its gate when its sandbox was made anew, as after a reboot of its node. */
const rewakes = (pods: readonly PodView[]): Action[] =>
  pods.filter(pod => pod.gate === 'waiting' && !pod.waking).map(pod => ({ type: 'rewake', pod }))

/** Superseded primaries go when their successor serves, or at once when they do not serve themselves. */
function retirements(cast: ReturnType<typeof castOf>): Action[] {
  const serving = new Set(cast.primaries.filter(pod => pod.ready).map(pod => pod.slot))
  return cast.superseded
    .filter(pod => !pod.ready || serving.has(pod.slot))
    .map(pod => remove(pod, 'Superseded'))
}

function partition<T>(items: readonly T[], test: (item: T) => boolean): [T[], T[]] {
  return [items.filter(test), items.filter(item => !test(item))]
}
