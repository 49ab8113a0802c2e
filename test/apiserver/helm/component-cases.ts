import { idOf, type KubeObject } from '../../../deploy/chart/merge.ts'
import { type Case, without } from './case.ts'

const agentsOff = ['../crds', 'admission', 'operator']
const isKind = ({ kind }: KubeObject) => kind === 'CustomResourceDefinition'
const jobs = (...names: readonly string[]) => ({
  podMigrationJobs: Object.fromEntries(['enabled', ...names].map(name => [name, true])),
})
/** All values that add something, and the components that do the same. */
export const everything = {
  ...jobs('reservations', 'preemptions', 'deletions'),
  ...{ migratingJobs: { enabled: true }, clonePods: { enabled: true }, memory: { namespaces: 'all' } },
  traces: { endpoint: 'http://otel-collector.monitoring:4318' },
}
export const allComponents = [
  ...['pod-migration-jobs', 'job-reservations', 'job-preemptions', 'job-deletions'],
  ...['migrating-jobs', 'clone-pods', 'traces', 'memory-everywhere'],
]

/** Parts that are there or not. */
export const componentCases: readonly Case[] = [
  { title: 'nothing' },
  { title: 'PodMigrationJobs', values: jobs(), components: ['pod-migration-jobs'] },
  {
    title: 'their reservations',
    values: jobs('reservations'),
    components: ['pod-migration-jobs', 'job-reservations'],
  },
  {
    title: 'their preemptions',
    values: jobs('reservations', 'preemptions'),
    components: ['pod-migration-jobs', 'job-reservations', 'job-preemptions'],
  },
  {
    title: 'their deletions without reservations',
    values: jobs('deletions'),
    components: ['pod-migration-jobs', 'job-deletions'],
  },
  {
    title: 'their deletions with reservations',
    values: jobs('reservations', 'deletions'),
    components: ['pod-migration-jobs', 'job-reservations', 'job-deletions'],
  },
  { title: 'Jobs that move', values: { migratingJobs: { enabled: true } }, components: ['migrating-jobs'] },
  { title: 'ClonePods', values: { clonePods: { enabled: true } }, components: ['clone-pods'] },
  {
    title: 'ClonePods and Jobs',
    values: { clonePods: { enabled: true }, migratingJobs: { enabled: true } },
    components: ['migrating-jobs', 'clone-pods'],
  },
  {
    title: 'traces',
    values: { traces: { endpoint: 'http://otel-collector.monitoring:4318' } },
    components: ['traces'],
  },
  {
    title: 'traces for another collector',
    values: { traces: { endpoint: 'https://tempo.example/otlp' } },
    components: ['traces'],
    adjust: objects =>
      JSON.parse(
        JSON.stringify(objects).replaceAll(
          'http://otel-collector.monitoring:4318',
          'https://tempo.example/otlp',
        ),
      ),
  },
  {
    title: 'memory everywhere',
    values: { memory: { namespaces: 'all' } },
    components: ['memory-everywhere'],
  },
  {
    title: 'a quota for the class of the agents',
    values: { agents: { priorityClass: 'system-with-quota' } },
    components: ['critical-pods-quota'],
  },
  {
    title: 'a class of their own for the agents',
    values: { agents: { priorityClass: 'own' } },
    components: ['own-priority-class'],
  },
  { title: 'Redis', values: { stateStore: { redis: true } }, resources: ['redis'] },
  { title: 'all components', values: everything, components: allComponents },
  {
    title: 'all components with Redis and a class of their own for the agents',
    values: { ...everything, stateStore: { redis: true }, agents: { priorityClass: 'own' } },
    resources: ['redis'],
    components: ['own-priority-class', ...allComponents],
  },
  { title: 'no agents', values: { agents: { enabled: false } }, resources: agentsOff },
  {
    title: 'no agents, but their class',
    values: { agents: { enabled: false, priorityClass: 'own' } },
    resources: agentsOff,
  },
  {
    title: 'no agents, with all components',
    values: { ...everything, agents: { enabled: false } },
    resources: agentsOff,
    components: allComponents,
  },
  {
    title: 'no kinds',
    values: { ...everything, crds: { install: false } },
    components: allComponents,
    adjust: without(isKind),
  },
  {
    title: 'a namespace of the agents that exists',
    values: { agents: { createNamespace: false } },
    adjust: without(object => idOf(object) === 'Namespace understudy-agents'),
  },
]
