/** Fixes, each reverted in one or several places, with scenarios that expose the revert. */
import { ofEnds } from './ends.ts'
import { ofFence } from './fence.ts'
import { ofGrant } from './grant.ts'
import { ofKeepers } from './keepers.ts'
import { ofMemory } from './memory.ts'
import { ofMoves } from './moves.ts'
import type { Mutant } from './mutant.ts'
import { ofOperator } from './operator.ts'

export const mutants: readonly Mutant[] = [
  ...ofMemory,
  ...ofOperator,
  ...ofKeepers,
  ...ofEnds,
  ...ofFence,
  ...ofGrant,
  ...ofMoves,
]
