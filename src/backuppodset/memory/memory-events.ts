import type { BackupPodSetStatus } from '../../api/backuppodset.ts'
import { conditionTypes } from '../../api/reasons.ts'
import type { MemoryView } from '../../slot/decide/memory-view.ts'
import type { SetEvent } from '../action-events.ts'

/**
 * Returns an event for each message that the condition `CheckpointReady` carries for the first time: why no memory is
 * saved, and warnings about memory that is. To be sent once a status with that condition has been written.
 */
export function memoryEvents(
  previous: BackupPodSetStatus | undefined,
  memory: MemoryView | undefined,
): readonly SetEvent[] {
  const told = previous?.conditions?.find(({ type }) => type === conditionTypes.checkpointReady)?.message
  return [...(memory?.refused ? [memory.refused] : []), ...(memory?.caveats ?? [])]
    .filter(({ message }) => told?.includes(message) !== true)
    .map(({ reason, message }) => ({ type: 'Warning', reason, action: 'Checkpoint', note: message }))
}
