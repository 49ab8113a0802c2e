import type { Cluster } from '../../playground/cluster.ts'
import type { Api } from '../../src/kube/api.ts'

export interface DrillContext {
  readonly api: Api
  readonly cluster: Cluster
  /** A namespace of the drill's own, deleted after it. */
  readonly namespace: string
  /** How often the thing is done; each drill has its own default. */
  readonly n: number
  readonly signal: AbortSignal
  readonly say: (text: string) => void
}

/** One endurance run. It throws at the first thing that is not as it must be. */
export interface Drill {
  readonly name: string
  readonly title: string
  readonly n: number
  /** @returns what was seen, a line each. */
  readonly run: (context: DrillContext) => Promise<readonly string[]>
}

/** @throws Error naming what was seen instead. */
export function must<T>(what: string, seen: T, holds: (seen: T) => boolean): void {
  if (!holds(seen)) throw new Error(`${what}: ${JSON.stringify(seen)}`)
}
