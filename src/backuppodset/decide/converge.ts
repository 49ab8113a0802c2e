import type { Random } from '../../kube/random.ts'
import { isGated, type LossReason, type LostPrimary } from '../../slot/decide/snapshot.ts'
import type { Action, Tier } from '../plan.ts'
import type { PodView, Snapshot } from '../snapshot.ts'
import { replaceable } from './losses.ts'
import { partitionPrimaries } from './primary-sets.ts'
import { acceptsState, lostFirst, restores, withState } from './pulled.ts'
import { refill } from './refill.ts'
import type { Policies } from './select.ts'
import { goes, remove, rewakes, toolsOf } from './tools.ts'

/**
 * Algorithm 1 of the paper as one plan: convert the cheapest pod that is left, then refill. Primaries come first, hot
 * backups when primaries are exact, cold ones when hot ones are exact. A pod that one tier converts counts for the
 * tiers below in the same plan. While a primary is being woken its tier is not exact and the plan ends there; the end
 * of the wake-up starts the next pass. A hot backup counts from its label on, which moves before the pod is woken.
 */
export function converge(s: Snapshot, random: Random, policies: Policies): Tier[] {
  const { strategy, replicas } = s.set
  const tools = toolsOf(s, random, policies)
  const { converting, surplus, creating } = tools

  // Understudies from the time when the set kept memory: they run no app, and no agent saves memory for them any more.
  const idle = s.pods.filter(pod => pod.kind !== 'primary' && pod.stage?.understudy)
  const hot = s.pods.filter(pod => pod.kind === 'hotbackup' && !idle.includes(pod))
  const cold = s.pods.filter(pod => pod.kind === 'coldbackup' && !idle.includes(pod))
  const cast = partitionPrimaries(s.pods.filter(pod => pod.kind === 'primary'))

  // Primaries.
  const missing = replicas - cast.primaries.length
  const failing = missing < 0 ? [] : replaceable(s, cast.primaries, sparesOf(hot, cold, missing))
  const healthy = cast.primaries.filter(pod => !failing.some(failed => failed.pod === pod))
  const slotless = cast.slotless.filter(pod => healthy.includes(pod))
  const nextRole = lostFirst(
    s,
    healthy.flatMap(pod => (pod.slot === undefined || slotless.includes(pod) ? [] : [pod.slot])),
    failing.flatMap(({ pod, reason }) => lossOf(s, pod, reason)),
  )
  const primaryActions: Action[] = []
  const surplusPrimaries = surplus(healthy, Math.max(0, -missing), strategy.replicasToUnallocated)
  for (const pod of slotless)
    if (!pod.waking && !goes(surplusPrimaries, pod))
      primaryActions.push({ type: 'convert', pod, to: 'primary', role: nextRole(), wake: false })
  primaryActions.push(...surplusPrimaries)

  let short = Math.max(0, replicas - healthy.length)
  const fromHot = converting(hot.filter(acceptsState), short, strategy.hotbackupToReplicas)
  short -= fromHot.length
  const fromCold = converting(cold.filter(acceptsState), short, strategy.coldbackupToReplicas)
  short -= fromCold.length
  for (const pod of [...fromHot, ...fromCold])
    primaryActions.push(
      withState(s, { type: 'convert', pod, to: 'primary', role: nextRole(), wake: isGated(pod) }),
    )
  for (; short > 0; short -= 1)
    primaryActions.push(withState(s, creating('primary', strategy.unallocatedToReplicas, nextRole)))
  const settled = healthy.filter(pod => !slotless.includes(pod) && !goes(surplusPrimaries, pod))
  // One write per pod: the next pass wakes a pod that gets a slot now.
  primaryActions.push(...rewakes(settled), ...restores(s, settled))

  const tiers: Tier[] = [
    { tier: 'primaries', actions: primaryActions },
    {
      tier: 'claims',
      actions: [
        ...s.finished.map(pod => remove(pod, 'Finished')),
        ...retirements(cast),
        ...idle.filter(pod => !pod.waking).map(pod => remove(pod, 'Outdated')),
      ],
    },
  ]
  if (healthy.some(pod => pod.waking)) return tiers
  const hotLeft = hot.filter(pod => !fromHot.includes(pod))
  const coldLeft = cold.filter(pod => !fromCold.includes(pod))
  return together(s, [...tiers, ...refill(s, tools, hotLeft, coldLeft)])
}

/** Counts the backups that are left for failing primaries once the missing ones are replaced. */
function sparesOf(hot: readonly PodView[], cold: readonly PodView[], missing: number) {
  const waiting = cold.filter(pod => pod.gate === 'waiting').length
  return {
    readyHot: hot.filter(pod => pod.ready && acceptsState(pod)).length - missing,
    // Hot backups are converted before cold ones, so no cold one is left for a failing primary while a hot one is
    // unready.
    gatedCold: hot.every(pod => pod.ready) ? waiting - Math.max(0, missing - hot.length) : 0,
  }
}

function lossOf(s: Snapshot, pod: PodView, reason: LossReason): readonly LostPrimary[] {
  const { name, slot, epoch, lastEnd } = pod
  if (slot === undefined) return []
  const lost = { name, slot, epoch, reason, seenAt: s.monotonicNow }
  return [lastEnd === undefined ? lost : { ...lost, why: lastEnd }]
}

/**
 * Merges the tiers when no action needs the success of another, as in a new set or when surplus is deleted. Tier after
 * tier, the later ones would wait while the nodes are busy with the pods of the first.
 */
export function together(s: Snapshot, tiers: readonly Tier[]): Tier[] {
  const actions = tiers.flatMap(tier => tier.actions)
  const isIndependent =
    (s.isNew && actions.every(({ type }) => type === 'create')) ||
    actions.every(action => action.type === 'delete' && action.reason === 'Surplus')
  return isIndependent ? [{ tier: 'together', actions }] : [...tiers]
}

/** Deletes superseded primaries when their successor serves, or at once when they do not serve themselves. */
function retirements(cast: ReturnType<typeof partitionPrimaries>): Action[] {
  const serving = new Set(cast.primaries.filter(pod => pod.ready).map(pod => pod.slot))
  return cast.superseded
    .filter(pod => !pod.ready || serving.has(pod.slot))
    .map(pod => remove(pod, 'Superseded'))
}
