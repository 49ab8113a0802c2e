import type { Counts } from '../observe/state.ts'

const counts = (all: number): Counts => ({ primary: all, hotbackup: all, coldbackup: all })

/** The operations of the paper's evaluation; each starts from the state that the previous one left. */
export const operations = [
  { name: 'E1', what: 'create 2/2/2', action: 'create', to: counts(2), replicas: 6 },
  { name: 'E2', what: '2/2/2 to 3/3/3', action: 'resize', to: counts(3), replicas: 9 },
  { name: 'E3', what: '3/3/3 to 1/1/1', action: 'resize', to: counts(1), replicas: 3 },
  { name: 'E4', what: 'delete a primary at 1/1/1', action: 'delete', to: counts(1), replicas: 3 },
] as const satisfies readonly {
  readonly name: string
  readonly what: string
  readonly action: 'create' | 'resize' | 'delete'
  /** The set's numbers afterwards. */
  readonly to: Counts
  /** Replicas of the Deployment that performs the nearest equivalent. */
  readonly replicas: number
}[]

export type Operation = (typeof operations)[number]

/** Figures of the paper's table (one run each, no spread reported), seconds. */
export const paperFigures = {
  E1: { controller: 0.211, total: 5.344 },
  E2: { controller: 0.113, total: 3.681 },
  E3: { controller: 0.226, total: 2.137 },
  E4: { controller: 0.079, total: 1.933 },
} as const

/**
 * The paper's own controller (commit of June 2021, compiled unchanged) on a three-node cluster of Kubernetes 1.36 like
 * the playground, n = 10, medians; by the same definitions as here. Seconds, and writes of the set.
 */
export const peerFigures = {
  E1: { controller: 0.074, total: 1.0, writes: 52 },
  E2: { controller: 0.067, total: 1.25, writes: 82 },
  E3: { controller: 0.608, total: 0.63, writes: 14 },
  E4: { controller: 0.075, total: 0.56, writes: 4 },
} as const
