import { type BackupPodSet, defaults, type SlotStatus } from '../../api/backuppodset.ts'
import { CliError } from '../failure.ts'

/**
 * Returns the kind of state that a set keeps of its primaries: the memory of processes (saved by agents), the state
 * that the application itself exports (fetched by the operator), or nothing.
 */
export function keptBy({ spec }: BackupPodSet): 'memory' | 'state' | 'nothing' {
  if (spec.checkpoint === undefined) return 'nothing'
  if (spec.checkpoint.source === 'http') return 'state'
  return (spec.hotBackup?.mode ?? defaults.hotBackupMode) === 'Warm' ? 'nothing' : 'memory'
}

/** Returns the slots to save: the given one, or all. @throws CliError when there is nothing to save. */
export function slotsOf(set: BackupPodSet, wanted: number | undefined): readonly SlotStatus[] {
  const { name } = set.metadata
  const kept = keptBy(set)
  if (kept === 'state')
    throw new CliError(
      `${name} has its state asked for by the operator (checkpoint.source: http), not saved by agents`,
      {
        advice: `it is asked every ${set.spec.checkpoint?.interval ?? defaults.checkpoint.interval}; \`kubectl understudy status ${name}\` says how old it is`,
      },
    )
  if (kept === 'nothing')
    throw new CliError(`${name} keeps no memory, so there is nothing to save`, {
      advice:
        '`checkpoint: {}` in its spec asks for it; `kubectl understudy doctor` says whether its template can',
    })
  if (wanted !== undefined) return [slotOf(set, wanted)]
  const slots = set.status?.slots ?? []
  if (slots.length === 0)
    throw new CliError(`${name} has no primaries yet`, {
      advice: `\`kubectl understudy status ${name} -w\` shows them come`,
    })
  return slots
}

/** @throws CliError that lists the existing slots. */
export function slotOf(set: BackupPodSet, wanted: number): SlotStatus {
  const slots = set.status?.slots ?? []
  const found = slots.find(({ slot }) => slot === wanted)
  if (found !== undefined) return found
  throw new CliError(`${set.metadata.name} has no slot ${wanted}`, {
    advice:
      slots.length === 0
        ? 'it has no primaries yet'
        : `there are: ${slots.map(({ slot }) => slot).join(', ')}`,
  })
}
