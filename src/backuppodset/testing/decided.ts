/** The plan of a pass with chance that repeats, for tests of the rules. */
import { seededRandom } from '../../kube/random.ts'
import { decide } from '../decide/decide.ts'
import type { Action, Plan } from '../plan.ts'
import type { Snapshot } from '../snapshot.ts'
import { actionsOf } from './snapshots.ts'

const random = seededRandom(1)
export const plan = (s: Snapshot): Plan => decide(s, random)
export const actions = (s: Snapshot): readonly Action[] => actionsOf(plan(s))
export const ofType = <T extends Action['type']>(s: Snapshot, type: T) =>
  actions(s).filter((action): action is Extract<Action, { type: T }> => action.type === type)

/** Fields of a primary whose app has ended: of its pod, and of its stage. */
export const dead = { ready: false }
export const died = { died: true }
