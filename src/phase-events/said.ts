/** The words of the status of each kind about its phase, for events. */
import { type ClonePod, clonePodSucceeded } from '../api/clone-pod.ts'
import type { MigratingPod } from '../api/migrating-pod.ts'
import { type Migration, outcomeOf } from '../api/migration.ts'
import type { PodMigrationJob } from '../api/pod-migration-job.ts'
import type { Said } from './phase-events.ts'

export function migrationSaid(migration: Migration): Said | undefined {
  const { phase, source, target } = migration.status ?? {}
  const outcome = outcomeOf(migration)
  if (phase === undefined || outcome === undefined) return undefined
  const way = source && target?.node !== undefined ? ` (${source.node} to ${target.node})` : ''
  const { reason, message } = outcome
  return { phase, reason, message: `${phase}: ${message}${way}`, isBad: phase === 'Failed' }
}

export function jobSaid({ status }: PodMigrationJob): Said | undefined {
  const { phase, reason, message } = status ?? {}
  // Thousands of jobs may wait, and the reasons for which they do change all the time.
  if (phase === undefined || phase === 'Pending' || !reason) return undefined
  return { phase, reason, message: `${phase}: ${message ?? reason}`, isBad: phase === 'Failed' }
}

export function clonePodSaid({ status }: ClonePod): Said | undefined {
  const { phase } = status ?? {}
  const outcome = status?.conditions?.find(({ type }) => type === clonePodSucceeded)
  if (phase === undefined || outcome === undefined) return undefined
  const { reason, message } = outcome
  return { phase, reason, message: `${phase}: ${message}`, isBad: phase === 'Failed' }
}

export function migratingPodSaid({ status }: MigratingPod): Said | undefined {
  const { state, activePod, node } = status ?? {}
  if (state === undefined) return undefined
  const place =
    activePod === undefined ? '' : ` as ${activePod}${node === undefined ? '' : ` on node ${node}`}`
  const ready = status?.conditions?.find(({ type }) => type === 'Ready')
  const message = `${state}${place}: ${ready?.message ?? ''}`
  return { phase: state, reason: state, message, isBad: state === 'Invalid' }
}
