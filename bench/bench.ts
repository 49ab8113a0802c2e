import type { ImageName } from '../images/build.ts'
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

/** The load on an application during a measurement. */
export interface LoadOptions {
  readonly connections: number
  /** Messages a second over all connections. */
  readonly perSecond: number
  /** Interval of the checkpoints, as a set specifies it. */
  readonly interval: string
  /** Ports of the clients' node; undefined: its own. */
  readonly ports: number | undefined
  readonly intervalSeconds: number
}

export interface BenchContext {
  readonly api: Api
  /** Undefined on the user's own cluster, whose nodes the bench cannot reach. */
  readonly playground: Cluster | undefined
  /** Undefined for benches that run without the operator. */
  readonly operator: Operator | undefined
  /** A built checkout of the paper's own controller, measured in the same run; undefined: not measured. */
  readonly peer: string | undefined
  /** For benches that load an application. */
  readonly load: LoadOptions
  /** For benches of memory of several sizes, GB; undefined: those of the bench. */
  readonly sizes: readonly number[] | undefined
  /** For benches with several modes: those to measure; undefined: all. */
  readonly modes: readonly string[] | undefined
  /** Trials of each case. */
  readonly n: number
  readonly clock: UnixClock
  readonly signal: AbortSignal
  /** References of images that all nodes have. */
  readonly images: BenchImages
  /** Prints a line of progress. */
  say(text: string): void
}

export interface Bench {
  readonly name: string
  /** One line for the list. */
  readonly title: string
  /** The choices of --modes; absent: it has none. */
  readonly modes?: readonly string[]
  /** Default number of trials. */
  readonly trials: number
  /** Requirements of the bench. */
  readonly needs: readonly ('operator' | 'playground')[]
  /** Images that a playground does not have by itself. */
  readonly images?: readonly ImageName[]
  /** Measures before the operator is installed on the cluster. */
  before?(context: BenchContext, samples: Sampler): Promise<void>
  run(context: BenchContext, samples: Samples): Promise<Report>
}

/**
 * Returns a value that the bench declares as a need.
 * @throws Error if the need was not declared or not met
 */
export function demand<T>(value: T | undefined, what: string): T {
  if (value === undefined) throw new Error(`this bench needs ${what}`)
  return value
}
