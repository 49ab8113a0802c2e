import type { Cluster } from '../../playground/cluster.ts'
import type { Api } from '../../src/kube/api.ts'

export interface EnduranceContext {
  readonly api: Api
  readonly cluster: Cluster
  /** Namespace of its own, deleted after it. */
  readonly namespace: string
  /** Number of repetitions; each run has its own default. */
  readonly n: number
  readonly signal: AbortSignal
  readonly say: (text: string) => void
}

/** One endurance run. It throws at the first violation. */
export interface Endurance {
  readonly name: string
  readonly title: string
  readonly n: number
  /** @returns the observations, a line each */
  readonly run: (context: EnduranceContext) => Promise<readonly string[]>
}

/** @throws Error that names the actual value */
export function must<T>(what: string, seen: T, holds: (seen: T) => boolean): void {
  if (!holds(seen)) throw new Error(`${what}: ${JSON.stringify(seen)}`)
}
