/** The reasons of the condition of Migrations: why one waits, and how it has ended. The only table of these. */
import type { Migration } from './migration.ts'

export const migrationReasons = [
  'SetBusy',
  'NodeBudget',
  'NamespaceBudget',
  'TotalBudget',
  'Begins',
  'TargetComing',
  'NoNode',
  'Unschedulable',
  'SetPaused',
  'SetSuspended',
  'NotSaved',
  'AgentSilent',
  'MemoryComing',
  'DowntimeTooLong',
  'Stopping',
  'Switching',
  'SourceNotFound',
  'SourceReplaced',
  'NotAPrimary',
  'NoMemory',
  'InvalidValue',
  'TargetFailed',
  'SourceLost',
  'SourceGone',
  'NotServing',
  'MovedElsewhere',
  'Moved',
] as const
export type MigrationReason = (typeof migrationReasons)[number]

export const isMigrationReason = (text: string | undefined): text is MigrationReason =>
  migrationReasons.some(reason => reason === text)

/** Reasons for which a Migration waits until a user acts, or for which its time-out ends it. */
const forUsers: ReadonlySet<string> = new Set<MigrationReason>([
  'NoNode',
  'Unschedulable',
  'SetPaused',
  // A suspension waits for as long as the primary cannot be saved.
  'SetSuspended',
  'NotSaved',
])

/** True if the Migration waits for something that only a user can change. */
export const waitsForUser = ({ status }: Pick<Migration, 'status'>): boolean =>
  (status?.phase === 'Pending' || status?.phase === 'Reserving' || status?.phase === 'Preparing') &&
  (status.conditions ?? []).some(({ type, reason }) => type === 'Succeeded' && forUsers.has(reason))
