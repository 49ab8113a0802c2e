import { isAgentError } from '../../api/agent-errors.ts'
import type { Stored } from '../../checkpoint/store.ts'
import { restoreDeadlineMs } from '../../slot/decide/deadlines.ts'
import type { Clone, RestoreOptions } from '../criu/memory-driver.ts'
import { isOf, type Place } from '../state/understudies.ts'
import { type KeepOutContext, keepStrangersOut } from './keep-out.ts'
import type { TaskContext } from './task-context.ts'

export type RestoreContext = Pick<
  TaskContext,
  'driver' | 'store' | 'restorableKinds' | 'clock' | 'metrics' | 'log'
> &
  KeepOutContext

/**
 * Restores a generation in an understudy, in place of any earlier clone; the new clone stays frozen.
 *
 * @throws AgentError, CheckpointError, the signal's reason; the understudy is empty then.
 */
export async function bringBack(
  work: RestoreContext,
  place: Place,
  stored: Stored,
  signal: AbortSignal,
  how: Pick<RestoreOptions, 'lazily' | 'clients'> = {},
): Promise<Clone> {
  const { driver, store, restorableKinds, clock, metrics, log } = work
  const { manifest } = stored
  const release = store.retain(manifest.slot, manifest.generation, manifest.epoch)
  const startedAt = clock.monotonic()
  const old = place.clone
  try {
    await keepStrangersOut(work, place.located, manifest.slot, signal)
    if (old !== undefined) {
      const isSuccession = isOf(old, manifest.slot)
      if (isSuccession) place.replace()
      else place.put(undefined)
      // The driver takes a frozen clone away by itself, once it has taken over the clients that wait for it.
      if (!isSuccession || old.stage === 'Thawed' || how.clients === undefined) await driver.discard(old)
    }
    const clone = await driver.restore(place.located, stored, {
      deadlineMs: restoreDeadlineMs(manifest.bytes),
      signal,
      ...how,
    })
    place.put(clone)
    metrics.restored({ seconds: (clock.monotonic() - startedAt) / 1000, bytes: manifest.bytes })
    await restorableKinds.add(manifest.restoreHash)
    return clone
  } catch (error) {
    place.put(undefined)
    if (isAgentError(error, 'UnderstudySpoiled')) place.spoil()
    // The restore may have failed before it took the old clone away.
    if (old !== undefined)
      await driver
        .discard(old)
        .catch((also: unknown) => log.warn({ err: also }, 'cannot end a clone that is to be replaced'))
    throw error
  } finally {
    release()
  }
}

export const isSameGeneration = (clone: Clone, { manifest }: Pick<Stored, 'manifest'>): boolean =>
  clone.epoch === manifest.epoch && clone.generation === manifest.generation
