import { readFile } from 'node:fs/promises'
import type { Clock } from '../kube/clock.ts'
import type { Log } from '../kube/log.ts'
import type { Random } from '../kube/random.ts'
import { createMemoryStore } from './memory.ts'
import { createRedisStore } from './redis.ts'
import { sealed } from './sealed.ts'
import type { StateStore } from './state-store.ts'

export interface StateStoreOptions {
  /** `memory`, or the URL of a Redis. */
  readonly stateStore: string
  /** A file with certificates to trust, for `rediss://`. */
  readonly stateStoreCa?: string | undefined
  readonly stateStorePassword?: string | undefined
}

/**
 * Opens the configured store; a Redis may be down at this time.
 * @param secrets values written to a Redis are sealed with the first of them, and opened with any.
 * @throws Error if the options are invalid, or the file cannot be read.
 */
export async function openStateStore(
  { stateStore, stateStoreCa, stateStorePassword }: StateStoreOptions,
  secrets: readonly [Uint8Array, ...(readonly Uint8Array[])],
  { clock, log, random }: { readonly clock: Clock; readonly log: Log; readonly random: Random },
): Promise<StateStore> {
  if (stateStore === 'memory') return createMemoryStore(clock)
  const ca = stateStoreCa === undefined ? undefined : await readFile(stateStoreCa, 'utf8')
  return sealed(
    createRedisStore({ url: stateStore, password: stateStorePassword, ca }, log, random),
    secrets,
    random,
  )
}
