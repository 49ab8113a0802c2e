import type { Random } from '../../kube/random.ts'
import type { Plan, Stage } from '../plan.ts'
import type { Snapshot } from '../snapshot.ts'
import { converge } from './converge.ts'
import { untilNextFailure } from './failing.ts'
import { rollout } from './rollout.ts'
import { policies as builtIn, type Policies } from './select.ts'

/**
 * From what is to what shall be done. Pure and total: the same snapshot, whatever the order of its pods, and the same
 * draws of `random` give the same plan; the plan of a converged set is empty.
 */
export function decide(s: Snapshot, random: Random, policies: Policies = builtIn): Plan {
  if (s.set.paused) return { stages: [], requeueAfterMs: undefined }
  const stages: Stage[] = [
    {
      tier: 'claims',
      actions: [
        ...s.orphans.map(pod => ({ type: 'adopt', pod }) as const),
        ...s.strays.map(pod => ({ type: 'release', pod }) as const),
      ],
    },
    ...converge(s, random, policies),
  ]
  const settled = stages.every(stage => stage.actions.length === 0) && s.pods.every(pod => !pod.waking)
  if (settled) stages.push({ tier: 'rollout', actions: rollout(s, random, policies) })
  return {
    stages: stages.filter(stage => stage.actions.length > 0),
    requeueAfterMs: untilNextFailure(s),
  }
}
