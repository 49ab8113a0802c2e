/** Keeps a store equal to what the API server holds, through every failure, until it is told to stop. */
import type { Api } from './api.ts'
import type { Clock } from './clock.ts'
import type { Log } from './log.ts'
import type { ReflectorMetrics } from './metrics-hooks.ts'
import type { KubeObject } from './object.ts'
import type { Random } from './random.ts'
import type { Resource } from './resources.ts'
import type { MutableStore } from './store.ts'

export interface ReflectorOptions<T extends KubeObject> {
  readonly api: Pick<Api, 'list' | 'watch'>
  readonly resource: Resource<T>
  /** What of the resource to mirror. Default: all of it. */
  readonly query?: {
    readonly namespace?: string | undefined
    readonly labelSelector?: string | undefined
    readonly fieldSelector?: string | undefined
  }
  readonly store: MutableStore<T>
  readonly clock: Clock
  readonly random: Random
  readonly log: Log
  readonly metrics?: ReflectorMetrics | undefined
  /** Applied to every object before it is stored. Default: drops `metadata.managedFields`. */
  readonly transform?: (object: T) => T
  /** A connection without a byte for so many milliseconds is taken for dead. Default 90 s. */
  readonly idleTimeoutMs?: number | undefined
}

export interface Reflector {
  /** Mirrors until the signal fires, then resolves. Never rejects for anything the server or the network does. */
  run(signal: AbortSignal): Promise<void>
  /** Resolves when the store has been complete once. @throws the signal's reason. */
  synced(signal: AbortSignal): Promise<void>
  hasSynced(): boolean
}

export function createReflector<T extends KubeObject>(_options: ReflectorOptions<T>): Reflector {
  throw new Error('not implemented yet')
}
