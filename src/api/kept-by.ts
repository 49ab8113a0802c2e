import { type BackupPodSet, defaults } from './backuppodset.ts'

/**
 * Returns the kind of state that a set keeps of its primaries: the memory of processes (saved by agents), the state
 * that the application itself exports (fetched by the operator), or nothing.
 */
export function keptBy({ spec }: BackupPodSet): 'memory' | 'state' | 'nothing' {
  if (spec.checkpoint === undefined) return 'nothing'
  if (spec.checkpoint.source === 'http') return 'state'
  return (spec.hotBackup?.mode ?? defaults.hotBackupMode) === 'Warm' ? 'nothing' : 'memory'
}
