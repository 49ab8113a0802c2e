import type { Random } from '../../kube/random.ts'
import { untilEnded } from '../../slot/decide/ending.ts'
import { fencesInPause, untilFenceInPause } from '../../slot/decide/fence/paused.ts'
import { untilVerdict } from '../../slot/decide/fence/verdict.ts'
import { untilGrantsEnd } from '../../slot/decide/grant.ts'
import type { Plan, Tier } from '../plan.ts'
import type { Snapshot } from '../snapshot.ts'
import { untilPauseEnds } from './breaker.ts'
import { untilCloned } from './clones.ts'
import { withCompletion } from './completed.ts'
import { converge } from './converge.ts'
import { untilDeath } from './deaths.ts'
import { untilOverdue } from './handover-turns.ts'
import { untilTried } from './last-resort.ts'
import { untilNextFailure } from './losses.ts'
import { convergeWithMemory } from './memory.ts'
import { withPolicies } from './policies.ts'
import { withErrands } from './relay.ts'
import { untilForgotten } from './retention.ts'
import { retirements, untilRetirementDelay } from './retirements.ts'
import { revisionActions } from './revisions.ts'
import { rollout } from './rollout.ts'
import { rolloutWithMemory, swapInProgress, targetsBeforeStop } from './rollout-with-memory.ts'
import { policies as builtIn, type Policies } from './select.ts'
import { services } from './services.ts'
import { replaceStranded, untilStranded } from './stranded.ts'
import { untilRetirement, untilUnpublished } from './superseded.ts'
import { withSuspension } from './suspension.ts'
import { untilDeparture } from './vacancies.ts'

/**
 * Returns the plan that leads from the observed state to the wanted one. Pure and total: the same snapshot, whatever
 * the order of its pods, and the same draws of `random` give the same plan; the plan of a converged set is empty.
 */
export function decide(observed: Snapshot, random: Random, policies: Policies = builtIn): Plan {
  if (observed.set.paused) return paused(observed)
  // The memory goes only once the status says that the work is done: an operator that ends here must not let it begin again.
  if (observed.isHeld) return { ...paused(observed), requeueAfterMs: heldMs }
  const s = withSuspension(withErrands(withCompletion(observed)))
  const tiers: Tier[] = [
    {
      tier: 'claims',
      actions: [
        ...s.orphans.map(pod => ({ type: 'adopt', pod }) as const),
        ...s.strays.map(pod => ({ type: 'release', pod }) as const),
      ],
    },
    ...(s.memory ? convergeWithMemory(s, s.memory, random, policies) : converge(s, random, policies)),
  ]
  // Comes before pods of the revision are made, but no other stage waits for it.
  const revisions: Tier = { tier: 'revisions', aside: true, actions: revisionActions(s) }
  const settled = tiers.every(tier => tier.actions.length === 0) && s.pods.every(pod => !pod.waking)
  if (settled) {
    const steps = s.memory ? rolloutWithMemory(s, s.memory, random, policies) : rollout(s, random, policies)
    tiers.push({ tier: 'rollout', actions: steps.length > 0 || s.set.suspended ? steps : replaceStranded(s) })
  } else if (s.memory) {
    const planned = tiers.flatMap(({ actions }) => actions)
    tiers.unshift({ tier: 'hotbackups', aside: true, actions: targetsBeforeStop(s, random, planned) })
    tiers.push({ tier: 'primaries', aside: true, actions: swapInProgress(s, s.memory, planned) })
  }
  if (s.formerSlots?.length)
    tiers.push({
      tier: 'assignments',
      aside: true,
      actions: s.formerSlots.map(({ slot, lease }) => ({ type: 'deleteSlot', slot, lease })),
    })
  if (s.retired?.length) tiers.push({ tier: 'retirements', aside: true, actions: retirements(s) })
  if (s.services) tiers.push({ tier: 'services', aside: true, actions: services(s, s.services, tiers) })
  return {
    tiers: [revisions, ...withPolicies(s, tiers)].filter(tier => tier.actions.length > 0),
    requeueAfterMs: soonest(
      untilNextFailure(s),
      untilOverdue(s),
      untilPauseEnds(s),
      untilDeparture(s),
      untilDeath(s),
      untilEnded(s),
      untilGrantsEnd(s),
      untilVerdict(s),
      untilTried(s),
      untilCloned(s),
      untilRetirement(s),
      untilUnpublished(s),
      untilForgotten(s),
      untilRetirementDelay(s),
      untilStranded(s),
    ),
  }
}

/** Until the next look whether the status says that the work is done, ms. */
const heldMs = 1_000

/** No pod is created, converted or deleted. But fences are maintained, so that no primary stays stopped or loses its voters. */
function paused(s: Snapshot): Plan {
  const actions = fencesInPause(s)
  const tiers: Tier[] = actions.length === 0 ? [] : [{ tier: 'assignments', aside: true, actions }]
  return { tiers: withPolicies(s, tiers), requeueAfterMs: untilFenceInPause(s) }
}

const soonest = (...times: readonly (number | undefined)[]): number | undefined => {
  const known = times.filter(ms => ms !== undefined)
  return known.length === 0 ? undefined : Math.min(...known)
}
