import type { Cluster } from '../playground/cluster.ts'
import type { Api } from '../src/kube/api.ts'
import type { UnixClock } from './clock.ts'
import type { Operator } from './operator.ts'
import type { Report, Sampler, Samples } from './report.ts'

export interface BenchImages {
  readonly counter: string
  readonly waker: string
  readonly redis: string
  readonly zoo: string
}

/** How an application is used while it is measured. */
export interface LoadOptions {
  readonly connections: number
  /** Messages of all connections together. */
  readonly perSecond: number
  /** Of its checkpoints, as a set has it. */
  readonly interval: string
  readonly intervalSeconds: number
}

export interface BenchContext {
  readonly api: Api
  /** Undefined on the reader's own cluster, whose nodes are not at hand. */
  readonly playground: Cluster | undefined
  /** Undefined for benches that run without it. */
  readonly operator: Operator | undefined
  /** A built checkout of the paper's own controller, to be measured in the same run; undefined: it is not. */
  readonly peer: string | undefined
  /** For benches of an application at work. */
  readonly load: LoadOptions
  /** Trials of each case. */
  readonly n: number
  readonly clock: UnixClock
  readonly signal: AbortSignal
  /** References of images that the nodes have. */
  readonly images: BenchImages
  /** A line of progress. */
  say(text: string): void
}

export interface Bench {
  readonly name: string
  /** One line for the list. */
  readonly title: string
  /** Trials when the command line does not say. */
  readonly trials: number
  /** What it cannot do without. */
  readonly needs: readonly ('operator' | 'playground')[]
  /** What is measured before the operator is on the cluster. */
  before?(context: BenchContext, samples: Sampler): Promise<void>
  run(context: BenchContext, samples: Samples): Promise<Report>
}

/** For benches that declare the need. @throws Error when it was not declared, or not met. */
export function demand<T>(value: T | undefined, what: string): T {
  if (value === undefined) throw new Error(`this bench needs ${what}`)
  return value
}
