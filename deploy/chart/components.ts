import type { Component } from './merge.ts'

/** Adds to deploy/base, and is no component: overlays name it among their resources. */
export const redis: Component = { name: 'redis', condition: '.Values.stateStore.redis' }

/**
 * The components of deploy/, in the order in which overlays name them. A component stands behind the components that it patches, and
 * a component that removes objects stands last.
 */
export const components: readonly Component[] = [
  { name: 'pod-migration-jobs', condition: '.Values.podMigrationJobs.enabled' },
  { name: 'job-reservations', condition: '.Values.podMigrationJobs.reservations' },
  { name: 'job-preemptions', condition: '.Values.podMigrationJobs.preemptions' },
  { name: 'job-deletions', condition: '.Values.podMigrationJobs.deletions' },
  { name: 'migrating-jobs', condition: '.Values.migratingJobs.enabled' },
  { name: 'clone-pods', condition: '.Values.clonePods.enabled' },
  { name: 'critical-pods-quota', condition: agentsWith('system-with-quota') },
  { name: 'own-priority-class', condition: agentsWith('own') },
  { name: 'traces', condition: '.Values.traces.endpoint' },
  { name: 'memory-everywhere', condition: 'eq .Values.memory.namespaces "all"' },
]

function agentsWith(priorityClass: string): string {
  return `and .Values.agents.enabled (eq .Values.agents.priorityClass "${priorityClass}")`
}
