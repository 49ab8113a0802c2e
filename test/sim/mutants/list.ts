/** Fixes, each taken back in one place or two, with scenarios in which that shows. */
import { ofMemory } from './memory.ts'
import type { Mutant } from './mutant.ts'

export const mutants: readonly Mutant[] = [...ofMemory]
