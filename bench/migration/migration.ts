import { benchOfMoves } from './bench-moves.ts'
import { byMigration } from './move.ts'

/** A node needs about three times the memory of the largest one, and agents with an `--memory-budget` for two generations of it. */
export const migration = benchOfMoves({
  name: 'migration',
  title:
    'a redis of each of --sizes moves to another node with its memory, at rest and under writes; beside a Deployment',
  sizes: [0, 0.2, 1],
  writes: true,
  trigger: byMigration,
})
