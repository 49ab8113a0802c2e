/** The shapes of the manager (manager.ts). */
import type { Api } from './api-types.ts'
import type { BackoffPolicy } from './backoff.ts'
import type { Cache, CacheOptions, CacheSet } from './cache-set.ts'
import type { Clock } from './clock.ts'
import type { ControllerOptions } from './controller.ts'
import type { Elector } from './election.ts'
import type { Log } from './log.ts'
import type { Metrics } from './metrics.ts'
import type { KubeObject } from './object.ts'
import type { Queue, QueueOptions } from './queue.ts'
import type { Random } from './random.ts'
import type { ReconcileContext, Result } from './reconcile.ts'
import type { Recorder, RecorderOptions } from './recorder.ts'
import type { Resource } from './resources.ts'
import type { Change } from './store.ts'

/** How the manager opens a client. */
export interface ClientOptions {
  /** Connections for requests. */
  readonly connections?: number | undefined
  /** Called at the first answer after an outage. */
  readonly onReachable?: (() => void) | undefined
}

export interface ManagerOptions {
  /** Name of the operator: user agent, field manager, source of its events, and its Lease. */
  readonly name: string
  /** For the user agent. Default 0. */
  readonly version?: string | undefined
  /** Namespace of the Lease. */
  readonly namespace: string
  /** Name of the Lease. Default: `name`. */
  readonly lease?: string | undefined
  /** Name of this replica in the election. Default: the host's name with a random part. */
  readonly identity?: string | undefined
  /** False: leads at once, for a single process in development. Default true. */
  readonly leaderElect?: boolean | undefined
  /** Default: the service account of the pod, else $KUBECONFIG, else ~/.kube/config. */
  readonly kubeconfig?: string | undefined
  /** Connections of `api`. Default 24. */
  readonly connections?: number | undefined
  /** Port of /healthz and /readyz; 0: any free port. Default 8081. */
  readonly healthPort?: number | undefined
  /** Port of /metrics; 0: any free port. Default 8080. */
  readonly metricsPort?: number | undefined
  /** Milliseconds after which a running pass counts as hanging, and /healthz fails. Default 5 min. */
  readonly passLimitMs?: number | undefined
  /** Opens a client. Default: for the API server of `kubeconfig`. Tests give a fake one. */
  readonly connect?: ((options: ClientOptions) => Api) | undefined
  readonly metrics?: Metrics | undefined
  readonly clock?: Clock | undefined
  readonly random?: Random | undefined
  readonly log: ControllerOptions['log']
}

/** A cache whose changes concern keys of a controller. Make it with `watch`. */
export interface Watch {
  readonly cache: Cache<KubeObject>
  readonly keysOf: (change: Change<KubeObject>) => Iterable<string>
}

/** Watches a cache for a controller: `keysOf` returns the keys that a change concerns. */
export const watch = <T extends KubeObject>(
  cache: Cache<T>,
  keysOf: (change: Change<T>) => Iterable<string>,
): Watch => ({ cache, keysOf: change => keysOf(change as Change<T>) })

export interface PassContext extends ReconcileContext {
  /**
   * The client of this pass. It sends no write after the end of the term, and notes each write: the next pass for this
   * key begins when the caches show it.
   */
  readonly api: Api
}

export interface ManagedControllerOptions
  extends Pick<ControllerOptions, 'name' | 'workers' | 'reserved' | 'timeoutMs' | 'drainMs' | 'graceMs'> {
  /** Its objects are reconciled, each by its key. */
  readonly for: Cache<KubeObject>
  /** A change of an object in these caches concerns its controlling owner. */
  readonly owns?: readonly Cache<KubeObject>[] | undefined
  readonly watches?: readonly Watch[] | undefined
  /** Backoff of failures. Default: 5 ms, doubled up to 1000 s. */
  readonly backoff?: BackoffPolicy | undefined
  readonly reconcile: (key: string, context: PassContext) => Promise<Result | undefined> | Promise<void>
}

/**
 * Work of the leader. When `stop` fires, it may finish its current step, unless the reason is a `StopNow`. `lost` fires
 * when leadership is lost; it is undefined without an election.
 */
export type Leading = (stop: AbortSignal, lost: AbortSignal | undefined) => Promise<void>

/** The setup of an operator adds its caches, controllers and other work here. */
export interface Manager {
  /** Reads and writes, whether this process leads or not. */
  readonly api: Api
  /** The same connections; its writes are sent only while this process leads. */
  readonly leaderApi: Api
  readonly caches: CacheSet
  /** Adds a cache; see `CacheSet`. */
  cache<T extends KubeObject>(resource: Resource<T>, options?: CacheOptions<T>): Cache<T>
  /** Adds a controller, with a queue and tracked writes of its own. It works while this process leads. */
  controller(options: ManagedControllerOptions): void
  /** Creates a recorder of events. Its pending events are written before the clients close. */
  recorder(options?: Pick<RecorderOptions, 'seriesOf' | 'laneOf' | 'burst' | 'refillMs'>): Recorder

  // For controllers that are composed by hand.
  /** Creates a queue. It is shut down after the work has ended; a pass that hangs fails /healthz. */
  queue(options: Pick<QueueOptions, 'name' | 'backoff'>): Queue
  /**
   * Adds work of the leader. It begins when the caches are fresh. The lease is released when all such work has ended.
   * A failure of `run` ends the process.
   */
  leading(run: Leading): void
  /** Adds work of every replica, from the end of the setup until after the leader's work. A failure ends the process. */
  background(run: (signal: AbortSignal) => Promise<void>): void
  /** Opens another client, with connections of its own. Its writes are sent whether this process leads or not. */
  client(options: ClientOptions): Api
  /** Restricts the writes of a client to the terms of this process. */
  fenced(api: Api): Api
  readonly election: Pick<Elector, 'isLeader' | 'reign'>
  /** Calls `close` at the end, after the background work and before everything that was opened earlier. */
  defer(close: () => Promise<void> | void): void
  /** Repeats a call until the API server answers it. @throws the reason of `signal`; any error that is an answer. */
  whenReachable<T>(ask: () => Promise<T>): Promise<T>
  /** Fires when the process has to end. */
  readonly signal: AbortSignal
  readonly metrics: Metrics
  readonly clock: Clock
  readonly random: Random
  readonly log: Log
}
