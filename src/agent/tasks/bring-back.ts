import { isAgentError } from '../../api/agent-errors.ts'
import type { Stored } from '../../checkpoint/store.ts'
import { restoreDeadlineMs } from '../../slot/decide/deadlines.ts'
import type { Clone, RestoreOptions } from '../criu/memory-driver.ts'
import { isOf, type Place } from '../state/understudies.ts'
import type { TaskContext } from './task-context.ts'

export type RestoreContext = Pick<TaskContext, 'driver' | 'store' | 'restorableKinds' | 'clock' | 'metrics'>

/**
 * Restores a generation in an understudy, in place of any earlier clone; the new clone stays frozen.
 *
 * @throws AgentError, CheckpointError, the signal's reason; the understudy is empty then.
 */
export async function bringBack(
  { driver, store, restorableKinds, clock, metrics }: RestoreContext,
  place: Place,
  stored: Stored,
  signal: AbortSignal,
  lazily?: RestoreOptions['lazily'],
): Promise<Clone> {
  const { manifest } = stored
  const release = store.retain(manifest.slot, manifest.generation, manifest.epoch)
  const startedAt = clock.monotonic()
  const old = place.clone
  try {
    if (old !== undefined) {
      const isSuccession = isOf(old, manifest.slot)
      if (isSuccession) place.replace()
      else place.put(undefined)
      // Clients that wait for the old clone of the same slot wait for the new one from then on.
      if (!isSuccession || old.stage === 'Thawed') await driver.discard(old)
    }
    const clone = await driver.restore(place.located, stored, {
      deadlineMs: restoreDeadlineMs(manifest.bytes),
      signal,
      ...(lazily === undefined ? {} : { lazily }),
    })
    place.put(clone)
    metrics.restored({ seconds: (clock.monotonic() - startedAt) / 1000, bytes: manifest.bytes })
    await restorableKinds.add(manifest.restoreHash)
    return clone
  } catch (error) {
    if (old !== undefined) await driver.discard(old)
    place.put(undefined)
    if (isAgentError(error, 'UnderstudySpoiled')) place.spoil()
    throw error
  } finally {
    release()
  }
}

export const isSameGeneration = (clone: Clone, { manifest }: Pick<Stored, 'manifest'>): boolean =>
  clone.epoch === manifest.epoch && clone.generation === manifest.generation
