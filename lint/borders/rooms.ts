/**
 * The architecture: the rooms of this repository, and which rooms each may import from. `npm run check` refuses every other
 * import, and draws the diagram of docs/architecture.md from this table.
 */

export interface Room {
  /** One line for the diagram. */
  readonly is: string
  /** Rooms that its production code may import from. */
  readonly uses: readonly string[]
  /** Files of those rooms that it may not import all the same; a path stands for every file that begins with it. */
  readonly not?: readonly string[]
}

/** The kernel and the agents know slots, and no kind that owns them. */
const ofOwners = ['src/api/backuppodset.ts', 'src/api/parse', 'src/api/schema/']
/** Agents know no numbers of slots either. */
const knowsNoOwner = [...ofOwners, 'src/api/numbered-slot.ts']

export const rooms: Readonly<Record<string, Room>> = {
  'src/kube': { is: 'client kit: transport, caches, queues, election', uses: [] },
  'src/api': { is: 'kinds, names, rules and reasons that all parts agree on', uses: ['src/kube'] },
  'src/state-store': { is: 'states over HTTP: memory, Redis', uses: ['src/api', 'src/kube'] },
  'src/phase-events': {
    is: 'events for people: one for each change of the phase of an object',
    uses: ['src/api', 'src/kube'],
  },
  'src/traces': {
    is: 'traces of failovers and moves: spans as data, bounded queue, OTLP',
    uses: ['src/api', 'src/kube'],
  },
  'src/probe': { is: 'probes over HTTP, TCP and gRPC, as the kubelet runs them', uses: ['src/kube'] },
  'src/checkpoint': {
    is: 'generations: manifest, store, delta, CRIU images',
    uses: ['src/api', 'src/kube'],
    not: ['src/api/numbered-slot.ts'],
  },
  'src/slot/decide': {
    is: 'rules of slots: copies, ages, successors, handovers, assignment',
    uses: ['src/api', 'src/kube'],
    not: ofOwners,
  },
  'src/slot': {
    is: 'kernel: a slot changes hands; records, pods, gates, endpoints',
    uses: ['src/api', 'src/kube', 'src/slot/decide'],
    not: ofOwners,
  },
  'src/slot/http-state': {
    is: 'state that apps return over HTTP: pulled, kept, given to successors',
    uses: ['src/api', 'src/checkpoint', 'src/kube', 'src/slot', 'src/slot/decide', 'src/state-store'],
    not: ofOwners,
  },
  'src/agent/report': {
    is: 'NodeReport, conditions, metrics',
    uses: ['src/api', 'src/checkpoint', 'src/kube', 'src/slot/decide'],
    not: knowsNoOwner,
  },
  'src/agent/container': {
    is: 'processes, mounts, cgroups, clients of hold and gate',
    uses: ['src/api', 'src/kube', 'src/probe'],
    not: knowsNoOwner,
  },
  'src/agent/sentinel': {
    is: 'client, installation and start of the sentinel',
    uses: ['src/api', 'src/kube', 'src/agent/container'],
    not: knowsNoOwner,
  },
  'src/agent/criu': {
    is: 'dump, restore, thaw, pages, rights',
    uses: [
      'src/api',
      'src/checkpoint',
      'src/kube',
      'src/slot/decide',
      'src/agent/container',
      'src/agent/sentinel',
    ],
    not: knowsNoOwner,
  },
  'src/agent/transfer': {
    is: 'generations between agents',
    uses: ['src/api', 'src/checkpoint', 'src/kube'],
    not: knowsNoOwner,
  },
  'src/agent/storage': {
    is: 'generations on the disk, work directories',
    uses: [
      'src/api',
      'src/checkpoint',
      'src/kube',
      'src/slot/decide',
      'src/agent/container',
      'src/agent/report',
    ],
    not: knowsNoOwner,
  },
  'src/agent/preflight': {
    is: 'canary, test containers, obstacles',
    uses: [
      'src/api',
      'src/checkpoint',
      'src/kube',
      'src/slot/decide',
      'src/agent/container',
      'src/agent/criu',
      'src/agent/sentinel',
    ],
    not: knowsNoOwner,
  },
  'src/agent/observe': {
    is: 'snapshot: pods, slots, reports, copies',
    uses: ['src/api', 'src/checkpoint', 'src/kube', 'src/slot/decide'],
    not: knowsNoOwner,
  },
  'src/agent/state': {
    is: 'memory of the process: deaths, clones, paces',
    uses: [
      'src/api',
      'src/checkpoint',
      'src/kube',
      'src/slot/decide',
      'src/traces',
      'src/agent/criu',
      'src/agent/observe',
      'src/agent/report',
      'src/agent/sentinel',
    ],
    not: knowsNoOwner,
  },
  'src/agent/decide': {
    is: 'desired tasks, slot reports, conditions: pure',
    uses: [
      'src/api',
      'src/checkpoint',
      'src/slot/decide',
      'src/agent/observe',
      'src/agent/report',
      'src/agent/state',
    ],
    not: knowsNoOwner,
  },
  'src/agent/tasks': {
    is: 'runner, and a file for each task',
    uses: [
      'src/api',
      'src/checkpoint',
      'src/kube',
      'src/probe',
      'src/slot/decide',
      'src/traces',
      'src/agent/container',
      'src/agent/criu',
      'src/agent/decide',
      'src/agent/observe',
      'src/agent/preflight',
      'src/agent/report',
      'src/agent/sentinel',
      'src/agent/state',
      'src/agent/transfer',
    ],
    not: knowsNoOwner,
  },
  'src/agent': {
    is: 'DaemonSet: dumps, replicates and restores memory on its node',
    uses: [
      'src/api',
      'src/checkpoint',
      'src/kube',
      'src/slot/decide',
      'src/traces',
      'src/agent/container',
      'src/agent/criu',
      'src/agent/observe',
      'src/agent/preflight',
      'src/agent/report',
      'src/agent/sentinel',
      'src/agent/state',
      'src/agent/storage',
      'src/agent/tasks',
      'src/agent/transfer',
    ],
    not: knowsNoOwner,
  },
  'src/backuppodset': {
    is: 'controller of BackupPodSets: observe, decide, act, report',
    uses: [
      'src/api',
      'src/checkpoint',
      'src/kube',
      'src/slot',
      'src/slot/decide',
      'src/slot/http-state',
      'src/state-store',
    ],
  },
  'src/migration': {
    is: 'controller of Migrations: lets them begin, and tells how far they are',
    uses: ['src/api', 'src/kube', 'src/slot', 'src/slot/decide'],
  },
  'src/drain': {
    is: 'controllers of drains: disruption budgets of sets, and Migrations away from drained nodes',
    uses: ['src/api', 'src/kube', 'src/slot', 'src/slot/decide'],
  },
  'src/podmigrationjob': {
    is: 'controller of PodMigrationJobs: arbitration, evictions, Migrations',
    uses: ['src/api', 'src/kube', 'src/slot', 'src/slot/decide'],
  },
  'src/migratingpod': {
    is: 'controller of MigratingPods: keeps a set for each, and tells where its pod is',
    uses: ['src/api', 'src/kube', 'src/slot'],
  },
  'src/migratingjob': {
    is: 'controller of Jobs whose pods move: keeps a MigratingPod for each',
    uses: ['src/api', 'src/kube'],
  },
  'src/clonepod': {
    is: 'controller of ClonePods: makes a MigratingPod with the memory of a pod, once',
    uses: ['src/api', 'src/kube'],
  },
  'src/operator': {
    is: 'Deployment: election, caches, controllers',
    uses: [
      'src/api',
      'src/backuppodset',
      'src/clonepod',
      'src/drain',
      'src/kube',
      'src/migratingjob',
      'src/migratingpod',
      'src/migration',
      'src/podmigrationjob',
      'src/slot',
      'src/slot/http-state',
      'src/state-store',
      'src/phase-events',
      'src/traces',
    ],
  },
  'src/terminal': { is: 'tables and progress for people', uses: [] },
  'src/cli': { is: 'kubectl understudy', uses: ['src/api', 'src/kube', 'src/terminal'] },
  src: { is: 'entry point', uses: ['src/agent', 'src/api', 'src/cli', 'src/operator', 'src/traces'] },
  build: { is: 'tools: compiler, cache, Debian packages, bundler', uses: [] },
  'native/common': { is: 'C: what all static programs share', uses: [] },
  'init-waker': { is: 'C: gate, first process of understudies', uses: ['build', 'native/common'] },
  native: {
    is: 'C: what agents run on their nodes, with CRIU',
    uses: ['build', 'init-waker', 'native/common'],
  },
  images: { is: 'recipes of images, OCI archives', uses: ['build', 'init-waker', 'native'] },
  plugin: { is: 'kubectl plugin: single executables, archives, krew manifest', uses: ['build', 'images'] },
  site: {
    is: 'documentation as a site: pages, reference of the API, search',
    uses: ['build', 'src/terminal'],
  },
  release: {
    is: 'release: install.yaml, bills of material, provenance, signatures',
    uses: ['build', 'deploy/chart/chart.ts', 'images', 'plugin', 'playground/artifacts/artifacts.ts'],
  },
}
