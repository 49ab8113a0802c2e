import type { BackupPodSetStatus } from '../../api/backuppodset.ts'
import { conditionTypes } from '../../api/reasons.ts'
import type { Notice } from '../notices.ts'
import type { MemoryView } from './view.ts'

/**
 * What the condition `CheckpointReady` says for the first time: why nothing is saved, and what to know of what is. To be
 * told once a status with it has been written.
 */
export function memoryNotices(
  previous: BackupPodSetStatus | undefined,
  memory: MemoryView | undefined,
): readonly Notice[] {
  const told = previous?.conditions?.find(({ type }) => type === conditionTypes.checkpointReady)?.message
  return [...(memory?.refused ? [memory.refused] : []), ...(memory?.caveats ?? [])]
    .filter(({ message }) => told?.includes(message) !== true)
    .map(({ reason, message }) => ({ type: 'Warning', reason, action: 'Checkpoint', note: message }))
}
