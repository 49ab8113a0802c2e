import { type MigrationPhase, type MigrationStatus, phaseTime } from './migration.ts'

/** Returns when the phase first began, ms since the epoch; undefined: it has not, or that is unreadable. */
export function beganAt(status: MigrationStatus, phase: MigrationPhase): number | undefined {
  const at = Date.parse(phaseTime(status, phase) ?? '')
  return Number.isNaN(at) ? undefined : at
}

/** Returns when the Migration ended, ms since the epoch; undefined: it has not. */
export const finishedAt = (status: MigrationStatus): number | undefined =>
  beganAt(status, 'Succeeded') ?? beganAt(status, 'Failed')
